import { type Client, everything, pages } from '../../client/client.ts'
import { failure } from '../../client/failure.ts'
import type { Incoming } from '../../client/fetch.ts'
import { UsageError } from '../faults.ts'

/** A route of any runtime, as a person types it. */
export interface TypedCall {
  method: string
  path: string
  headers: Record<string, string>
  body?: string
}

/** What the transport says itself of how a request travels. */
const ofTheTransport = new Set(['content-length', 'expect', 'keep-alive', 'transfer-encoding', 'upgrade'])

const methods = ['GET', 'POST', 'PATCH', 'PUT', 'DELETE', 'HEAD']

/**
 * Returns an HTTP method in upper case.
 *
 * @throws UsageError  no route uses the method
 */
export function knownMethod(typed: string): string {
  const method = typed.toUpperCase()
  if (methods.includes(method)) return method
  throw new UsageError(`"${typed}" is not a method`, ['wb api GET /version'])
}

/**
 * Headers from `Name: value` texts.
 *
 * @throws UsageError one has no colon, or cannot be sent; its value is not shown, as it may be a credential
 */
export function namedHeaders(headers: readonly string[]): Record<string, string> {
  const pairs = headers.map(header => {
    const at = header.indexOf(':')
    if (at < 1) throw new UsageError('a header is not "Name: value"', ['-H "Accept: text/event-stream"'])
    const [name, value] = [header.slice(0, at).trim(), header.slice(at + 1).trim()]
    if (!/^[\w!#$%&'*+.^`|~-]+$/.test(name) || !/^[\t\x20-\x7e\x80-\xff]*$/.test(value))
      throw new UsageError(`the header ${name.split(/\s/)[0]} holds a character that no header may`)
    if (ofTheTransport.has(name.toLowerCase()))
      throw new UsageError(`the header ${name} is the transport's own`)
    return [name.toLowerCase(), value] as const
  })
  return Object.fromEntries(pairs)
}

/**
 * All items of a list, by following `nextCursor`.
 *
 * @throws UsageError the method is not GET, or the route does not answer in pages
 */
export async function allPages(client: Client, { method, path, headers }: TypedCall): Promise<unknown[]> {
  if (method !== 'GET')
    throw new UsageError(`--pages reads the pages of a list, so it cannot be used with ${method}`, [
      'leave out --pages, or use GET',
    ])
  const all = pages(async cursor => {
    const answer: Incoming = await client.raw({
      method,
      path: cursor === null ? path : withCursor(path, cursor),
      headers,
    })
    if (answer.status >= 300) throw await failure(answer)
    return pageOf(path, await answer.text())
  })
  return everything(all)
}

function pageOf(path: string, text: string): { items: unknown[]; nextCursor: string | null } {
  const value: unknown = jsonOf(text)
  if (typeof value === 'object' && value !== null && 'items' in value && Array.isArray(value.items))
    return { nextCursor: null, ...value, items: value.items }
  throw new UsageError(`${path} does not answer in pages`, ['leave --pages out'])
}

/** The value of a JSON text; undefined when it is none. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function withCursor(path: string, cursor: string): string {
  return `${path}${path.includes('?') ? '&' : '?'}cursor=${encodeURIComponent(cursor)}`
}
