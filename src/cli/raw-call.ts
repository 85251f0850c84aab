import type { Client } from '../client/client.ts'
import { failure } from '../client/failure.ts'
import type { Incoming } from '../client/transport.ts'
import { UsageError } from './faults.ts'

/** A route of any runtime, as a person types it. */
export interface TypedCall {
  method: string
  path: string
  headers: Record<string, string>
  body?: string
}

/**
 * Headers from `Name: value` texts.
 *
 * @throws UsageError one has no colon
 */
export function namedHeaders(headers: readonly string[]): Record<string, string> {
  const pairs = headers.map(header => {
    const at = header.indexOf(':')
    if (at < 1) throw new UsageError(`the header "${header}" is not "Name: value"`)
    return [header.slice(0, at).trim().toLowerCase(), header.slice(at + 1).trim()] as const
  })
  return Object.fromEntries(pairs)
}

/**
 * All items of a list, by following `nextCursor`.
 *
 * @throws UsageError the route does not answer in pages
 */
export async function allPages(client: Client, { method, path, headers }: TypedCall): Promise<unknown[]> {
  const items: unknown[] = []
  let cursor: string | null = null
  do {
    const answer: Incoming = await client.raw({
      method,
      path: cursor ? withCursor(path, cursor) : path,
      headers,
    })
    if (answer.status >= 300) throw await failure(answer)
    const page = JSON.parse(await answer.text()) as { items?: unknown[]; nextCursor?: string | null }
    if (!Array.isArray(page.items))
      throw new UsageError(`${path} does not answer in pages`, ['leave --pages out'])
    items.push(...page.items)
    cursor = page.nextCursor ?? null
  } while (cursor)
  return items
}

function withCursor(path: string, cursor: string): string {
  return `${path}${path.includes('?') ? '&' : '?'}cursor=${encodeURIComponent(cursor)}`
}
