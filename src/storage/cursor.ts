import { createCipheriv, createDecipheriv, createHmac, timingSafeEqual } from 'node:crypto'
import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { WorkPacer } from '../base/work-pacer.ts'
import { WbError } from '../contract/errors.ts'
import { limits } from '../contract/limits.ts'
import type { AnyTable, ColumnName, ColumnValue, ListQuery, RowStore, RowTable, Stored } from './rows.ts'
import { getOrCreateSecret } from './store-secret.ts'

const cipherName = 'aes-256-ctr'
const signatureBytes = 16
/** Positions are padded to a multiple of this length, so that the length of a cursor does not reveal a number. */
const blockBytes = 32
/** Maximum number of rows of a slice, and the total length that ends it. Parsing a slice takes about 10 ms. */
const sliceSize = { limit: 1_000, charsMax: 1_000_000 }
/** Minimum number of rows to read at once for a page that omits some of them. */
const filteredBatchMin = 50
/** Total length of the rows, in characters of JSON, that ends a batch of such a page. */
const batchChars = 1_000_000

/** Creates the cursor encoder of a store. The store contains the key that signs cursors. */
export async function openCursors(rows: RowStore): Promise<Cursors> {
  return new Cursors(await getOrCreateSecret(rows, 'cursor-key'))
}

/**
 * Encodes and decodes keyset cursors. A signature ensures that a cursor is valid only for the list that returned it. A
 * position is encrypted, because the numbers of rows would reveal how many hidden rows are between them. The signature
 * is the initialization vector of the encryption (RFC 5297 section 1.1), so equal positions have equal cursors.
 */
export class Cursors {
  readonly #encryptionKey: Buffer

  /** @param key  secret of the store, so that all its processes accept the same cursors */
  constructor(private readonly key: string) {
    this.#encryptionKey = createHmac('sha256', key).update('cursor encryption').digest()
  }

  /**
   * Returns the cursor of a position in a list.
   *
   * @param list      identity of the list: its table, parents and query
   * @param position  sort values of the last row of the page
   */
  encode(list: string, position: readonly ColumnValue[]): string {
    const signature = this.sign(list, position)
    const cipher = createCipheriv(cipherName, this.#encryptionKey, signature)
    return Buffer.concat([signature, cipher.update(padded(JSON.stringify(position)))]).toString('base64url')
  }

  /**
   * Returns the position of a cursor.
   *
   * @throws invalid_cursor  the cursor was not created by `encode` for this list
   */
  decode(list: string, cursor: string): ColumnValue[] {
    const position = cursor.length <= limits.cursorChars ? this.decrypt(cursor) : undefined
    if (!position || !equalsInConstantTime(this.encode(list, position), cursor))
      throw new WbError('invalid_cursor', 'cursor: is not a cursor of this list')
    return position
  }

  /** Returns the position of a cursor, which is not verified yet; undefined if the cursor has no position. */
  private decrypt(cursor: string): ColumnValue[] | undefined {
    const bytes = Buffer.from(cursor, 'base64url')
    if (bytes.length < signatureBytes) return undefined
    const signature = bytes.subarray(0, signatureBytes)
    const decipher = createDecipheriv(cipherName, this.#encryptionKey, signature)
    try {
      // White space after the value is valid JSON.
      return JSON.parse(decipher.update(bytes.subarray(signatureBytes)).toString('utf8')) as ColumnValue[]
    } catch {
      return undefined
    }
  }

  private sign(list: string, position: readonly ColumnValue[]): Buffer {
    const mac = createHmac('sha256', this.key)
      .update(JSON.stringify([list, position]))
      .digest()
    return mac.subarray(0, signatureBytes)
  }
}

/** Returns a text followed by spaces, in whole blocks. */
function padded(text: string): Buffer {
  const rest = Buffer.byteLength(text) % blockBytes
  return Buffer.from(rest === 0 ? text : text + ' '.repeat(blockBytes - rest))
}

function equalsInConstantTime(left: string, right: string): boolean {
  const [a, b] = [Buffer.from(left), Buffer.from(right)]
  return a.length === b.length && timingSafeEqual(a, b)
}

export interface RowPage<Row> {
  items: Row[]
  nextCursor: string | null
}

/** An index, and the prefix of its columns that selects the rows. */
export interface RowList extends Pick<ListQuery, 'index' | 'prefix'> {}

/** A list of rows that can be in descending order, can be limited to tags, and can end at a given value. */
export interface RowRange extends RowList, Pick<ListQuery, 'descending' | 'through' | 'tags'> {
  /** Identifies the condition that selects rows. It is part of the list identity for which a cursor is valid. */
  readonly filter?: string
}

/** Limits of a page that omits some of its rows. */
export interface ScanLimits {
  /** Number of rows to read, after which the page ends. */
  readonly rowsMax: number
  /** Ends the request. */
  readonly signal?: AbortSignal
}

/** Selects the items of a page from the rows of a list. */
export interface RowSearch<Row, Item> {
  /** Returns the item for a row; undefined if the row is not part of the page. */
  select(stored: Stored<Row>): Promise<Item | undefined>
  /** True if the page must end, to limit the time of a request. */
  readonly isExhausted: boolean
}

/** Reads rows in pages by an index. */
export class Pager {
  constructor(
    private readonly rows: RowStore,
    private readonly cursors: Cursors,
  ) {}

  /**
   * Returns a page of the rows that match the prefix of the index.
   *
   * @throws invalid_cursor  the cursor belongs to another list
   */
  async page<Row extends object>(
    table: RowTable<Row>,
    list: RowRange,
    query: { limit: number; cursor?: string },
  ): Promise<RowPage<Row>> {
    const after = this.startOf(table, list, query)
    const limit = query.limit + 1
    const storedRows = await this.rows.list(table, { ...list, after, limit, charsMax: limits.answerChars })
    const last = storedRows.at(-1)
    if (last === undefined || storedRows.length === limit || totalChars(storedRows) <= limits.answerChars)
      return this.toPage(table, list, storedRows, query.limit)
    const more = await this.rows.list(table, { ...list, after: positionOf(table, list, last), limit: 1 })
    return this.toPage(table, list, [...storedRows, ...more], storedRows.length)
  }

  /**
   * Returns a page of rows that the caller has already read, in the order of an index.
   *
   * @throws invalid_cursor  the cursor belongs to another list
   */
  async pageOfRows<Row extends object>(
    table: RowTable<Row>,
    list: RowList,
    storedRows: readonly Stored<Row>[],
    query: { limit: number; cursor?: string },
  ): Promise<RowPage<Row>> {
    const after = this.startOf(table, list, query)
    const remaining = storedRows
      .map(stored => ({ stored, position: positionOf(table, list, stored) }))
      .filter(({ position }) => after === undefined || compareValues(position, after) > 0)
      .sort((a, b) => compareValues(a.position, b.position))
    return this.toPage(
      table,
      list,
      remaining.map(({ stored }) => stored),
      query.limit,
    )
  }

  /**
   * Returns a page of the rows for which `accepts` returns true. Like any page, it ends early if it gets too long. With
   * `scan`, it also ends early after many rows, so it can have fewer rows than its limit, or none, even if more pages
   * follow.
   *
   * @throws invalid_cursor  the cursor belongs to another list
   */
  async filteredPage<Row extends object, Kept extends Row>(
    table: RowTable<Row>,
    list: RowRange,
    query: { limit: number; cursor?: string },
    accepts: (row: Row) => row is Kept,
    { rowsMax, signal }: ScanLimits = { rowsMax: Number.POSITIVE_INFINITY },
  ): Promise<RowPage<Kept>> {
    const pacer = new WorkPacer(signal)
    let scanned = 0
    const accepted: Stored<Kept>[] = []
    let acceptedChars = 0
    const limit = Math.max(query.limit + 1, filteredBatchMin)
    let after = this.startOf(table, list, query)
    for (;;) {
      const batch = await this.rows.list(table, { ...list, after, limit, charsMax: batchChars })
      for (const stored of batch) {
        if (!accepts(stored.row)) continue
        accepted.push({ ...stored, row: stored.row })
        acceptedChars += stored.text.length
        // The last row is not part of the page: it shows that a next page exists. Only accepted rows decide where a page
        // ends, because otherwise its length would reveal the sizes of the other rows.
        const isFull = accepted.length > 1 && acceptedChars > limits.answerChars
        if (isFull || accepted.length > query.limit)
          return this.toPage(table, list, accepted, accepted.length - 1)
      }
      if (isLastBatch(batch, { limit, charsMax: batchChars }))
        return this.toPage(table, list, accepted, query.limit)
      after = positionOf(table, list, batch.at(-1)!)
      scanned += batch.length
      if (scanned >= rowsMax)
        return {
          items: accepted.map(stored => stored.row),
          nextCursor: this.cursors.encode(listIdentity(table, list), after),
        }
      // The store reads synchronously, so without this pause a long list would block the event loop.
      await pacer.yieldIfDue()
    }
  }

  /** Yields all rows of a list, in slices. Other work can run between two slices. */
  async *slices<Row extends object>(
    table: RowTable<Row>,
    list: RowRange,
  ): AsyncGenerator<Stored<Row>[], void, undefined> {
    let after: ColumnValue[] | undefined
    for (;;) {
      const slice = await this.rows.list(table, { ...list, after, ...sliceSize })
      if (slice.length === 0) return
      yield slice
      after = positionOf(table, list, slice.at(-1)!)
      await yieldToEventLoop()
    }
  }

  /**
   * Returns a page of the items that a search selects. A page ends early when `isExhausted` becomes true, so it can have
   * fewer items than its limit, or none, even if more pages follow.
   *
   * @throws invalid_cursor  the cursor belongs to another list
   */
  async searchPage<Row extends object, Item>(
    table: RowTable<Row>,
    list: RowRange,
    query: { limit: number; cursor?: string },
    search: RowSearch<Row, Item>,
  ): Promise<RowPage<Item>> {
    const items: Item[] = []
    let after = this.startOf(table, list, query)
    for (;;) {
      const size = { limit: filteredBatchMin, charsMax: batchChars }
      const batch = await this.rows.list(table, { ...list, after, ...size })
      for (const stored of batch) {
        if (after && (items.length === query.limit || search.isExhausted))
          return { items, nextCursor: this.cursors.encode(listIdentity(table, list), after) }
        const item = await search.select(stored)
        if (item !== undefined) items.push(item)
        after = positionOf(table, list, stored)
      }
      if (isLastBatch(batch, size)) return { items, nextCursor: null }
      await yieldToEventLoop()
    }
  }

  /**
   * Returns the position after which a page starts; undefined for the first page.
   *
   * @throws invalid_cursor  the cursor belongs to another list
   */
  private startOf(
    table: AnyTable,
    list: RowRange,
    { cursor }: { cursor?: string },
  ): ColumnValue[] | undefined {
    return cursor === undefined ? undefined : this.cursors.decode(listIdentity(table, list), cursor)
  }

  /** @param storedRows  rows of the page, followed by at least one more row unless it is the last page */
  private toPage<Row extends object, PageRow extends Row>(
    table: RowTable<Row>,
    list: RowRange,
    storedRows: readonly Stored<PageRow>[],
    limit: number,
  ): RowPage<PageRow> {
    const pageRows = storedRows.slice(0, limit)
    const last = storedRows.length > limit ? pageRows.at(-1) : undefined
    const nextCursor = last
      ? this.cursors.encode(listIdentity(table, list), positionOf(table, list, last))
      : null
    return { items: pageRows.map(stored => stored.row), nextCursor }
  }
}

/** Returns true if no rows of a list follow the rows that a read with these limits returned. */
export function isLastBatch(
  rows: readonly { readonly text: string }[],
  { limit, charsMax }: { limit: number; charsMax: number },
): boolean {
  return rows.length < limit && totalChars(rows) <= charsMax
}

function totalChars(storedRows: readonly { readonly text: string }[]): number {
  return storedRows.reduce((sum, { text }) => sum + text.length, 0)
}

function listIdentity(table: AnyTable, { index, prefix, descending, through, filter }: RowRange): string {
  const parts = [table.name, index, ...prefix]
  if (descending) parts.push('down')
  if (through !== undefined) parts.push('through', through)
  if (filter !== undefined) parts.push('filter', filter)
  return parts.join('/')
}

/** Compares positions column by column; nulls come first. */
function compareValues(left: readonly ColumnValue[], right: readonly ColumnValue[]): number {
  for (const [index, value] of left.entries()) {
    const other = right[index] ?? null
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
