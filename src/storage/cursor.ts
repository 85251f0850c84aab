import { createHmac, timingSafeEqual } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { WbError } from '../contract/errors.ts'
import { limits } from '../contract/limits.ts'
import type { AnyTable, ColumnName, ColumnValue, ListQuery, RowStore, RowTable, Stored } from './rows.ts'
import { getOrCreateSecret } from './store-secret.ts'

const sealBytes = 12
/**
 * Maximum number of characters in a page. A page that exceeds it ends early, to limit the memory it takes.
 */
const pageCharsMax = 16_000_000
/** Minimum number of rows per read when some of them are filtered out. */
const filteredBatchMin = 50

/** Creates the cursors of a store, signed with a key that is kept in the store. */
export async function openCursors(rows: RowStore): Promise<Cursors> {
  return new Cursors(await getOrCreateSecret(rows, 'cursor-key'))
}

/** Keyset cursors, signed so that a cursor is valid only for the list that it came from. */
export class Cursors {
  /** @param key  secret of the store, so that all its processes accept the same cursors */
  constructor(private readonly key: string) {}

  /**
   * Returns the cursor of a position in a list.
   *
   * @param list      identity of the list: its table, parents and query
   * @param position  sort values of the last row of the page
   */
  seal(list: string, position: readonly ColumnValue[]): string {
    return Buffer.from(JSON.stringify([...position, this.sign(list, position)])).toString('base64url')
  }

  /** @throws invalid_cursor  the cursor was not created by `seal` for this list */
  open(list: string, cursor: string): ColumnValue[] {
    const parts = cursor.length <= limits.cursorChars ? parseCursor(cursor) : undefined
    const seal = parts?.pop()
    if (!parts || typeof seal !== 'string' || !equalsInConstantTime(seal, this.sign(list, parts)))
      throw new WbError('invalid_cursor', 'cursor: is not a cursor of this list')
    return parts
  }

  private sign(list: string, position: readonly ColumnValue[]): string {
    const mac = createHmac('sha256', this.key)
      .update(JSON.stringify([list, position]))
      .digest()
    return mac.subarray(0, sealBytes).toString('base64url')
  }
}

function parseCursor(cursor: string): ColumnValue[] | undefined {
  try {
    const bytes = Buffer.from(cursor, 'base64url')
    // The decoder skips characters outside base64url, so one cursor would have many spellings.
    if (bytes.toString('base64url') !== cursor) return undefined
    const parts: unknown = JSON.parse(bytes.toString('utf8'))
    return Array.isArray(parts) && parts.every(isValue) ? parts : undefined
  } catch {
    return undefined
  }
}

function isValue(part: unknown): part is ColumnValue {
  return part === null || typeof part === 'string' || typeof part === 'number'
}

function equalsInConstantTime(left: string, right: string): boolean {
  const [a, b] = [Buffer.from(left), Buffer.from(right)]
  return a.length === b.length && timingSafeEqual(a, b)
}

export interface RowPage<Row> {
  items: Row[]
  nextCursor: string | null
}

/** An index and a prefix, which select and order rows. */
export interface RowList extends Pick<ListQuery, 'index' | 'prefix'> {}

/** A list that can run backwards, and can end at a given value. */
export interface RowRange extends RowList, Pick<ListQuery, 'descending' | 'through'> {
  /** Condition that rows are selected by. A cursor is valid for one condition only. */
  readonly filter?: string
}

/** Reads rows in pages by an index. */
export class Pager {
  constructor(
    private readonly rows: RowStore,
    private readonly cursors: Cursors,
  ) {}

  /**
   * Returns one page of the rows under a prefix of an index.
   *
   * @throws invalid_cursor  the cursor belongs to another list
   */
  async page<Row extends object>(
    table: RowTable<Row>,
    list: RowRange,
    query: { limit: number; cursor?: string },
  ): Promise<RowPage<Row>> {
    const after =
      query.cursor === undefined ? undefined : this.cursors.open(listIdentity(table, list), query.cursor)
    const limit = query.limit + 1
    const found = await this.rows.list(table, { ...list, after, limit, charsMax: pageCharsMax })
    const last = found.at(-1)
    if (last === undefined || found.length === limit || totalChars(found) <= pageCharsMax)
      return this.cut(table, list, found, query.limit)
    const more = await this.rows.list(table, { ...list, after: positionOf(table, list, last), limit: 1 })
    return this.cut(table, list, [...found, ...more], found.length)
  }

  /**
   * Returns one page of rows that the caller has already read, in the order of an index.
   *
   * @throws invalid_cursor  the cursor belongs to another list
   */
  async pageOf<Row extends object>(
    table: RowTable<Row>,
    list: RowList,
    found: readonly Stored<Row>[],
    query: { limit: number; cursor?: string },
  ): Promise<RowPage<Row>> {
    const after =
      query.cursor === undefined ? undefined : this.cursors.open(listIdentity(table, list), query.cursor)
    const placed = found
      .map(stored => ({ stored, at: positionOf(table, list, stored) }))
      .filter(({ at }) => after === undefined || compareValues(at, after) > 0)
      .sort((a, b) => compareValues(a.at, b.at))
    return this.cut(
      table,
      list,
      placed.map(({ stored }) => stored),
      query.limit,
    )
  }

  /**
   * Returns one page of the rows that `keep` accepts. Like any page, it ends early if it grows too long.
   *
   * @throws invalid_cursor  the cursor belongs to another list
   */
  async filteredPage<Row extends object, Kept extends Row>(
    table: RowTable<Row>,
    list: RowRange,
    query: { limit: number; cursor?: string },
    accepts: (row: Row) => row is Kept,
  ): Promise<RowPage<Kept>> {
    const kept: Stored<Kept>[] = []
    const limit = Math.max(query.limit + 1, filteredBatchMin)
    let after =
      query.cursor === undefined ? undefined : this.cursors.open(listIdentity(table, list), query.cursor)
    for (;;) {
      const batch = await this.rows.list(table, { ...list, after, limit, charsMax: pageCharsMax })
      for (const stored of batch) if (accepts(stored.row)) kept.push({ ...stored, row: stored.row })
      const isLast = batch.length < limit && totalChars(batch) <= pageCharsMax
      // A page that ends early leaves out its last row, which only proves that there are more.
      const isFull = kept.length > 1 && totalChars(kept) > pageCharsMax
      if (isFull) return this.cut(table, list, kept, Math.min(query.limit, kept.length - 1))
      if (isLast || kept.length > query.limit) return this.cut(table, list, kept, query.limit)
      after = positionOf(table, list, batch.at(-1)!)
      // Reads of the store end synchronously, so without this pause many rows would block the event loop.
      await nextTurn()
    }
  }

  /**
   * Returns one page of the rows that a search finds. A page ends early if the search is spent, so it can have fewer rows
   * than its limit, or none, and still be followed by others.
   *
   * @throws invalid_cursor  the cursor belongs to another list
   */
  async pageOfFound<Row extends object>(
    table: RowTable<Row>,
    list: RowRange,
    query: { limit: number; cursor?: string },
    search: { finds(row: Row): Promise<boolean>; readonly isExhausted: boolean },
  ): Promise<RowPage<Row>> {
    const items: Row[] = []
    let after =
      query.cursor === undefined ? undefined : this.cursors.open(listIdentity(table, list), query.cursor)
    for (;;) {
      const batch = await this.rows.list(table, { ...list, after, limit: filteredBatchMin })
      for (const stored of batch) {
        if (after && (items.length === query.limit || search.isExhausted))
          return { items, nextCursor: this.cursors.seal(listIdentity(table, list), after) }
        if (await search.finds(stored.row)) items.push(stored.row)
        after = positionOf(table, list, stored)
      }
      if (batch.length < filteredBatchMin) return { items, nextCursor: null }
    }
  }

  /** @param found  rows of the page, followed by at least one more row if there are more */
  private cut<Row extends object, Found extends Row>(
    table: RowTable<Row>,
    list: RowRange,
    found: readonly Stored<Found>[],
    limit: number,
  ): RowPage<Found> {
    const shown = found.slice(0, limit)
    const last = found.length > limit ? shown.at(-1) : undefined
    const nextCursor = last
      ? this.cursors.seal(listIdentity(table, list), positionOf(table, list, last))
      : null
    return { items: shown.map(stored => stored.row), nextCursor }
  }
}

function totalChars(found: readonly { readonly text: string }[]): number {
  return found.reduce((sum, { text }) => sum + text.length, 0)
}

function listIdentity(table: AnyTable, { index, prefix, descending, through, filter }: RowRange): string {
  const place = [table.name, index, ...prefix]
  if (descending) place.push('down')
  if (through !== undefined) place.push('through', through)
  if (filter !== undefined) place.push('filter', filter)
  return place.join('/')
}

/** Orders texts by code point, like the store; nulls first. */
function compareValues(left: readonly ColumnValue[], right: readonly ColumnValue[]): number {
  for (const [at, value] of left.entries()) {
    const other = right[at] ?? null
    if (value !== other) return value === null || (other !== null && value < other) ? -1 : 1
  }
  return 0
}

function positionOf<Row extends object>(
  table: RowTable<Row>,
  list: RowList,
  stored: Stored<Row>,
): ColumnValue[] {
  const sorting = table.indexes[list.index]!.slice(list.prefix.length)
  return sorting.map(column =>
    column === 'ordinal' ? stored.ordinal : (stored.row[column as ColumnName<Row>] as ColumnValue),
  )
}
