import { parseJson } from '../../base/parse-json.ts'
import { type Client, collect, readPages } from '../../client/client.ts'
import { errorFromResponse } from '../../client/error-from-response.ts'
import type { Incoming } from '../../client/fetch.ts'
import { UsageError } from '../errors.ts'

/** A request as given on the command line. */
export interface TypedCall {
  method: string
  path: string
  headers: Record<string, string>
  body?: string
}

/** Headers that the transport sets. */
const transportHeaders = new Set(['content-length', 'expect', 'keep-alive', 'transfer-encoding', 'upgrade'])

const methods = ['GET', 'POST', 'PATCH', 'PUT', 'DELETE', 'HEAD']

/**
 * Returns an HTTP method in upper case.
 *
 * @throws UsageError  no route uses the method
 */
export function parseMethod(typed: string): string {
  const method = typed.toUpperCase()
  if (methods.includes(method)) return method
  throw new UsageError(`"${typed}" is not a method`, ['wb api GET /version'])
}

/**
 * Parses headers in the format `Name: value`. Messages do not contain values, which may be secret.
 *
 * @throws UsageError  a header has another format, or cannot be sent
 */
export function parseHeaders(headers: readonly string[]): Record<string, string> {
  const pairs = headers.map(header => {
    const at = header.indexOf(':')
    if (at < 1) throw new UsageError('a header is not "Name: value"', ['-H "Accept: text/event-stream"'])
    const [name, value] = [header.slice(0, at).trim(), header.slice(at + 1).trim()]
    if (!/^[\w!#$%&'*+.^`|~-]+$/.test(name) || !/^[\t\x20-\x7e\x80-\xff]*$/.test(value))
      throw new UsageError(`the header ${name.split(/\s/)[0]} contains an invalid character`)
    if (transportHeaders.has(name.toLowerCase())) throw new UsageError(`the header ${name} cannot be set`)
    return [name.toLowerCase(), value] as const
  })
  return Object.fromEntries(pairs)
}

/**
 * Returns all items of a list route, across pages.
 *
 * @throws UsageError  the method is not GET, or the route does not return pages
 */
export async function fetchAllPages(
  client: Client,
  { method, path, headers }: TypedCall,
): Promise<unknown[]> {
  if (method !== 'GET')
    throw new UsageError(`--pages reads the pages of a list, so it cannot be used with ${method}`, [
      'leave out --pages, or use GET',
    ])
  const all = readPages(async cursor => {
    const answer: Incoming = await client.raw({
      method,
      path: cursor === null ? path : withCursor(path, cursor),
      headers,
    })
    if (answer.status >= 300) throw await errorFromResponse(answer)
    return parsePage(path, await answer.text())
  })
  return collect(all)
}

function parsePage(path: string, text: string): { items: unknown[]; nextCursor: string | null } {
  const value: unknown = parseJson(text)
  if (typeof value === 'object' && value !== null && 'items' in value && Array.isArray(value.items))
    return { nextCursor: null, ...value, items: value.items }
  throw new UsageError(`${path} does not return pages`, ['leave out --pages'])
}

function withCursor(path: string, cursor: string): string {
  return `${path}${path.includes('?') ? '&' : '?'}cursor=${encodeURIComponent(cursor)}`
}
