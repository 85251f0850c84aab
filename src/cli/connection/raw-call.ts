import { parseJson } from '../../base/parse-json.ts'
import { shellWord } from '../../base/shell-word.ts'
import { type Client, collect, readPages } from '../../client/client.ts'
import { errorFromResponse } from '../../client/error-from-response.ts'
import type { IncomingResponse } from '../../client/fetch.ts'
import { UsageError } from '../errors.ts'

/** A request that was specified on the command line. */
export interface CommandLineRequest {
  method: string
  path: string
  headers: Record<string, string>
  body?: string
}

/** Headers that the HTTP transport sets, so users cannot set them. */
const transportHeaders = new Set(['content-length', 'expect', 'keep-alive', 'transfer-encoding', 'upgrade'])

const methods = ['GET', 'POST', 'PATCH', 'PUT', 'DELETE', 'HEAD']

/**
 * Returns an HTTP method in upper case.
 *
 * @throws UsageError  no route uses the method
 */
export function parseMethod(input: string): string {
  const method = input.toUpperCase()
  if (methods.includes(method)) return method
  const path = input.startsWith('/') ? shellWord(input) : '/version'
  throw new UsageError(`"${input}" is not an HTTP method that the API uses`, [`wb api GET ${path}`])
}

/**
 * Parses headers in the format `Name: value`. Error messages do not contain the values, which may be secret.
 *
 * @throws UsageError  a header does not have this format, or cannot be sent
 */
export function parseHeaders(headers: readonly string[]): Record<string, string> {
  const pairs = headers.map(header => {
    const separator = header.indexOf(':')
    if (separator < 1)
      throw new UsageError('a header does not have the format "Name: value"', [
        '-H "Accept: text/event-stream"',
      ])
    const [name, value] = [header.slice(0, separator).trim(), header.slice(separator + 1).trim()]
    if (!/^[\w!#$%&'*+.^`|~-]+$/.test(name) || !/^[\t\x20-\x7e\x80-\xff]*$/.test(value))
      throw new UsageError(`the header ${name.split(/\s/)[0]} contains an invalid character`)
    if (transportHeaders.has(name.toLowerCase())) throw new UsageError(`the header ${name} cannot be set`)
    return [name.toLowerCase(), value] as const
  })
  return Object.fromEntries(pairs)
}

/**
 * Returns all items of a list route, from all pages.
 *
 * @throws UsageError  the method is not GET, or the route does not return pages
 */
export async function fetchAllPages(
  client: Client,
  { method, path, headers }: CommandLineRequest,
): Promise<unknown[]> {
  if (method !== 'GET')
    throw new UsageError(`--pages reads the pages of a list, so it cannot be used with ${method}`, [
      'leave out --pages, or use GET',
    ])
  const items = readPages(async cursor => {
    const response: IncomingResponse = await client.raw({
      method,
      path: cursor === null ? path : withCursor(path, cursor),
      headers,
    })
    if (response.status >= 300) throw await errorFromResponse(response)
    return parsePage(path, await response.text())
  })
  return collect(items)
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
