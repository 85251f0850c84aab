import { z } from 'zod'
import { WbError } from '../contract/errors.ts'
import { limits } from '../contract/limits.ts'
import type { ToolPage, ToolPageQuery } from './route-caller.ts'
import { declareArgument, type FacadeResult } from './tool.ts'

const limitDefault = 20
/** Maximum length of a cursor, in UTF-16 units. A tool's cursor contains the cursor of a route, which is shorter. */
const cursorCharsMax = 2_000
export const cursorArgument = z.string().min(1).max(cursorCharsMax)
/** Maximum number of lists to read for one page, because many lists can be empty. */
const listsPerPageMax = 100

/** Arguments of all tools that return lists. */
export const pagingArguments = {
  limit: declareArgument(
    z.int().min(1).max(limits.pageMax).default(limitDefault),
    `Number of items to return, 1 to ${limits.pageMax}; ${limitDefault} if omitted.`,
    50,
  ),
  cursor: declareArgument(
    cursorArgument.optional(),
    'Cursor of the page to return, from the end of the previous page. Omit it for the first page.',
    'eyJ2IjoxfQ',
  ),
}

/** Returns the result of a tool for a page of a list. */
export function pageResult({ items, nextCursor }: ToolPage<unknown>): FacadeResult {
  return { payload: items, nextCursor }
}

/** Several lists that are read in sequence. Each is opened when the previous one ends. */
export interface ListChain<T> {
  /** Opens the list at a position, null for the first. Returns undefined after the last list. */
  open(position: string | null): Promise<OpenedList<T> | undefined>
}

/** One list of a chain. */
export interface OpenedList<T> {
  /** Position of the next list; null if this is the last one. */
  readonly next: string | null
  read(query: ToolPageQuery): Promise<ToolPage<T>>
}

/** Position of a list, and the cursor within that list. */
const chainCursor = z.tuple([z.string().nullable(), z.string().nullable()])

/**
 * Returns one page of the items of all lists in a chain.
 *
 * @throws invalid_cursor
 */
export async function chainedPage<T>(
  chain: ListChain<T>,
  { limit, cursor }: ToolPageQuery,
): Promise<ToolPage<T>> {
  const items: T[] = []
  let [position, innerCursor] = cursor === undefined ? [null, null] : decodeCursor(chainCursor, cursor)
  for (let listCount = 0; items.length < limit; listCount++) {
    if (listCount === listsPerPageMax) break
    const list = await chain.open(position)
    if (!list) return { items, nextCursor: null }
    const page = await list.read({ limit: limit - items.length, cursor: innerCursor ?? undefined })
    items.push(...page.items)
    innerCursor = page.nextCursor
    if (innerCursor !== null) continue
    if (list.next === null) return { items, nextCursor: null }
    position = list.next
  }
  return { items, nextCursor: encodeCursor([position, innerCursor]) }
}

/**
 * Encodes a cursor that has several parts. The cursor contains no secret and grants no access: access is checked when
 * the list is read.
 */
export function encodeCursor(parts: readonly unknown[]): string {
  return Buffer.from(JSON.stringify(parts)).toString('base64url')
}

/** @throws invalid_cursor */
export function decodeCursor<S extends z.ZodType>(schema: S, text: string): z.output<S> {
  try {
    return schema.parse(JSON.parse(Buffer.from(text, 'base64url').toString('utf8')))
  } catch {
    throw new WbError('invalid_cursor', 'the cursor does not belong to this list; omit it to start again')
  }
}
