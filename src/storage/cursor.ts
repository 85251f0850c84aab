import { createHmac, timingSafeEqual } from 'node:crypto'
import { WbError } from '../contract/errors.ts'
import { limits } from '../contract/limits.ts'
import type { AnyTable, Column, ListQuery, RowStore, Stored, Table, Value } from './rows.ts'
import { storeSecret } from './secret.ts'

const sealBytes = 12
/**
 * Maximum number of characters in a page. A page that exceeds it ends early, to limit the memory it takes.
 */
const pageCharsMax = 16_000_000
/** Minimum number of rows per read when some of them are filtered out. */
const keptBatchMin = 50

/** Creates the cursors of a store, signed with a key that is kept in the store. */
export async function openCursors(rows: RowStore): Promise<Cursors> {
  return new Cursors(await storeSecret(rows, 'cursor-key'))
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
  seal(list: string, position: readonly Value[]): string {
    return Buffer.from(JSON.stringify([...position, this.sign(list, position)])).toString('base64url')
  }

  /** @throws invalid_cursor  the cursor was not created by `seal` for this list */
  open(list: string, cursor: string): Value[] {
    const parts = cursor.length <= limits.cursorChars ? parse(cursor) : undefined
    const seal = parts?.pop()
    if (!parts || typeof seal !== 'string' || !equal(seal, this.sign(list, parts)))
      throw new WbError('invalid_cursor', 'cursor: not a cursor of this list')
    return parts
  }

  private sign(list: string, position: readonly Value[]): string {
    const mac = createHmac('sha256', this.key)
      .update(JSON.stringify([list, position]))
      .digest()
    return mac.subarray(0, sealBytes).toString('base64url')
  }
}

function parse(cursor: string): Value[] | undefined {
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

function isValue(part: unknown): part is Value {
  return part === null || typeof part === 'string' || typeof part === 'number'
}

function equal(left: string, right: string): boolean {
  const [a, b] = [Buffer.from(left), Buffer.from(right)]
  return a.length === b.length && timingSafeEqual(a, b)
}

export interface Page<Row> {
  items: Row[]
  nextCursor: string | null
}

/** An index and a prefix, which select and order rows. */
export interface List extends Pick<ListQuery, 'index' | 'prefix'> {}

/** A list that can run backwards, and can end at a given value. */
export interface Stretch extends List, Pick<ListQuery, 'descending' | 'through'> {
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
    table: Table<Row>,
    list: Stretch,
    query: { limit: number; cursor?: string },
  ): Promise<Page<Row>> {
    const after =
      query.cursor === undefined ? undefined : this.cursors.open(identityOf(table, list), query.cursor)
    const limit = query.limit + 1
    const found = await this.rows.list(table, { ...list, after, limit, charsMax: pageCharsMax })
    const last = found.at(-1)
    if (last === undefined || found.length === limit || charsOf(found) <= pageCharsMax)
      return this.cut(table, list, found, query.limit)
    const more = await this.rows.list(table, { ...list, after: position(table, list, last), limit: 1 })
    return this.cut(table, list, [...found, ...more], found.length)
  }

  /**
   * Returns one page of rows that the caller has already read, in the order of an index.
   *
   * @throws invalid_cursor  the cursor belongs to another list
   */
  async pageOf<Row extends object>(
    table: Table<Row>,
    list: List,
    found: readonly Stored<Row>[],
    query: { limit: number; cursor?: string },
  ): Promise<Page<Row>> {
    const after =
      query.cursor === undefined ? undefined : this.cursors.open(identityOf(table, list), query.cursor)
    const placed = found
      .map(stored => ({ stored, at: position(table, list, stored) }))
      .filter(({ at }) => after === undefined || order(at, after) > 0)
      .sort((a, b) => order(a.at, b.at))
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
  async pageOfKept<Row extends object, Kept extends Row>(
    table: Table<Row>,
    list: Stretch,
    query: { limit: number; cursor?: string },
    keep: (row: Row) => row is Kept,
  ): Promise<Page<Kept>> {
    const kept: Stored<Kept>[] = []
    const limit = Math.max(query.limit + 1, keptBatchMin)
    let after =
      query.cursor === undefined ? undefined : this.cursors.open(identityOf(table, list), query.cursor)
    for (;;) {
      const batch = await this.rows.list(table, { ...list, after, limit, charsMax: pageCharsMax })
      for (const stored of batch) if (keep(stored.row)) kept.push({ ...stored, row: stored.row })
      const isLast = batch.length < limit && charsOf(batch) <= pageCharsMax
      // A page that ends early leaves out its last row, which only proves that there are more.
      const isFull = kept.length > 1 && charsOf(kept) > pageCharsMax
      if (isFull) return this.cut(table, list, kept, Math.min(query.limit, kept.length - 1))
      if (isLast || kept.length > query.limit) return this.cut(table, list, kept, query.limit)
      after = position(table, list, batch.at(-1)!)
    }
  }

  /** @param found  rows of the page, followed by at least one more row if there are more */
  private cut<Row extends object, Found extends Row>(
    table: Table<Row>,
    list: Stretch,
    found: readonly Stored<Found>[],
    limit: number,
  ): Page<Found> {
    const shown = found.slice(0, limit)
    const last = found.length > limit ? shown.at(-1) : undefined
    const nextCursor = last ? this.cursors.seal(identityOf(table, list), position(table, list, last)) : null
    return { items: shown.map(stored => stored.row), nextCursor }
  }
}

function charsOf(found: readonly { readonly text: string }[]): number {
  return found.reduce((sum, { text }) => sum + text.length, 0)
}

function identityOf(table: AnyTable, { index, prefix, descending, through, filter }: Stretch): string {
  const place = [table.name, index, ...prefix]
  if (descending) place.push('down')
  if (through !== undefined) place.push('through', through)
  if (filter !== undefined) place.push('filter', filter)
  return place.join('/')
}

/** Orders texts by code point, like the store; nulls first. */
function order(left: readonly Value[], right: readonly Value[]): number {
  for (const [at, value] of left.entries()) {
    const other = right[at] ?? null
    if (value !== other) return value === null || (other !== null && value < other) ? -1 : 1
  }
  return 0
}

function position<Row extends object>(table: Table<Row>, list: List, stored: Stored<Row>): Value[] {
  const sorting = table.indexes[list.index]!.slice(list.prefix.length)
  return sorting.map(column =>
    column === 'ordinal' ? stored.ordinal : (stored.row[column as Column<Row>] as Value),
  )
}
