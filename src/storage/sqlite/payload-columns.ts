import { groupBy } from '../../base/group-by.ts'
import type { Payload } from '../content.ts'
import { conditionsOf, type Filter, type KeyCondition, storedValue } from '../filter.ts'
import { indexOfSorted, SelectedRecords, SortedRecords } from '../record-set.ts'
import { decodePayload } from './collections.ts'
import type { SqliteConnection } from './connection.ts'
import { deletionsAfter, lastDeletion } from './deletion-log.ts'
import { PayloadColumn, withCapacity } from './payload-column.ts'

/** Rows per SQL query. Reading lists of rows is faster than stepping through the rows. */
const ROWS_PER_READ = 512

/** Returns a bitmap of the rows that satisfy a condition. */
type ConditionMatcher = (condition: KeyCondition) => Uint32Array

/** Fields of a collection that are needed to load its columns, and to keep them up to date. */
export interface FilteredCollection {
  readonly id: number
  readonly version: number
  readonly records: number
}

/**
 * The payload values of some keys of a collection in memory. Evaluates filters on them. The caller must start the
 * transactions in which the values are read.
 *
 * A row is the position of a record among all records that were read, in ascending order. Deleted records keep their
 * rows until the columns are loaded again.
 */
export class PayloadColumns {
  readonly #connection: SqliteConnection
  readonly #collection: number
  /** Columns by key, least recently used first. */
  readonly #columns: Map<string, PayloadColumn>
  #version = -1
  #records = new Float64Array(0)
  #rows = 0
  /** Bitmap of the rows whose records are not deleted. */
  #live = new Uint32Array(0)
  #liveRows = 0
  #lastDeletion: number

  private constructor(connection: SqliteConnection, collection: number, keys: Iterable<string>) {
    this.#connection = connection
    this.#collection = collection
    this.#columns = new Map(Array.from(keys, key => [key, new PayloadColumn()]))
    this.#lastDeletion = lastDeletion(connection, collection)
  }

  /**
   * Reads the payloads of a collection.
   *
   * @param keys      keys that the columns must have
   * @param optional  keys of columns that are left out if there is not enough memory, in this order
   * @returns undefined if the columns take more than `bytesMax` bytes
   */
  static load(
    connection: SqliteConnection,
    collection: FilteredCollection,
    { keys, optional, bytesMax }: { keys: ReadonlySet<string>; optional: Iterable<string>; bytesMax: number },
  ): PayloadColumns | undefined {
    const columns = new PayloadColumns(connection, collection.id, new Set([...optional, ...keys]))
    return columns.#append(collection.version, keys, bytesMax) ? columns : undefined
  }

  get keys(): Iterable<string> {
    return this.#columns.keys()
  }

  get bytes(): number {
    let bytes = this.#records.byteLength + this.#live.byteLength
    for (const column of this.#columns.values()) bytes += column.bytes
    return bytes
  }

  /** Returns true if there are columns for all keys, and marks them as recently used. */
  use(keys: Iterable<string>): boolean {
    for (const key of keys) {
      const column = this.#columns.get(key)
      if (!column) return false
      this.#columns.delete(key)
      this.#columns.set(key, column)
    }
    return true
  }

  /**
   * Applies later changes of the collection, by this process or another one.
   *
   * @returns false if the columns must be loaded again: the deletion log does not go back far enough, most rows are
   *          deleted, or the columns for `keys` take more than `bytesMax` bytes
   */
  update(collection: FilteredCollection, keys: ReadonlySet<string>, bytesMax: number): boolean {
    if (collection.version === this.#version) return true
    for (const { seq, record } of deletionsAfter(this.#connection, this.#collection, this.#lastDeletion)) {
      this.#lastDeletion = seq
      const row = indexOfSorted(this.#records.subarray(0, this.#rows), record)
      if (row < 0 || !this.#isLive(row)) continue
      this.#live[row >>> 5]! ^= 1 << (row & 31)
      this.#liveRows--
    }
    if (!this.#append(collection.version, keys, bytesMax)) return false
    // Too many rows mean that a deletion is missing from the log.
    return this.#liveRows === collection.records && 2 * this.#liveRows >= this.#rows
  }

  /** Returns the records that satisfy a filter. There must be columns for all its keys. */
  matching(filter: Filter): SortedRecords | SelectedRecords {
    const bitmap = this.#evaluate(filter, this.#matcher(filter))
    let size = 0
    for (let word = 0; word < bitmap.length; word++) {
      bitmap[word]! &= this.#live[word]!
      for (let bits = bitmap[word]!; bits !== 0; bits &= bits - 1) size++
    }
    // Rows are only appended, and a longer list is a new array, so these rows never change.
    const selected = new SelectedRecords(this.#records.subarray(0, this.#rows), bitmap, size)
    const isSparse = size * Float64Array.BYTES_PER_ELEMENT < bitmap.byteLength
    return isSparse ? new SortedRecords(selected.ascending) : selected
  }

  #matcher(filter: Filter): ConditionMatcher {
    const byKey = groupBy(conditionsOf(filter), ({ key }) => key)
    const matchers = new Map<string, ConditionMatcher>()
    for (const [key, conditions] of byKey) matchers.set(key, this.#columns.get(key)!.matcher(conditions))
    return condition => matchers.get(condition.key)!(condition)
  }

  /** Returns the bitmap of a filter. Bits of deleted records and after the last row can have any value. */
  #evaluate(filter: Filter, match: ConditionMatcher): Uint32Array {
    switch (filter.kind) {
      case 'and':
        return this.#combine(filter.parts, match, { empty: 0xffff_ffff, combine: (a, b) => a & b })
      case 'or':
        return this.#combine(filter.parts, match, { empty: 0, combine: (a, b) => a | b })
      case 'not':
        return this.#evaluate(filter.operand, match).map(bits => ~bits)
      default:
        return match(filter)
    }
  }

  #combine(
    parts: readonly Filter[],
    match: ConditionMatcher,
    { empty, combine }: { empty: number; combine: (a: number, b: number) => number },
  ): Uint32Array {
    const [first, ...others] = parts
    if (!first) return new Uint32Array((this.#rows + 31) >>> 5).fill(empty)
    const bitmap = this.#evaluate(first, match)
    for (const part of others) {
      const other = this.#evaluate(part, match)
      for (let word = 0; word < bitmap.length; word++) bitmap[word] = combine(bitmap[word]!, other[word]!)
    }
    return bitmap
  }

  #isLive(row: number): boolean {
    return ((this.#live[row >>> 5]! >>> (row & 31)) & 1) === 1
  }

  /** Appends new records, whose numbers are higher than the last one; returns false if they do not fit into memory. */
  #append(version: number, keys: ReadonlySet<string>, bytesMax: number): boolean {
    const last = this.#rows === 0 ? 0 : this.#records[this.#rows - 1]!
    for (const { record, payload } of readPayloads(this.#connection, this.#collection, last)) {
      this.#add(record, payload)
      if (this.#rows % ROWS_PER_READ === 0 && !this.#shrinkTo(bytesMax, keys)) return false
    }
    this.#version = version
    return this.#shrinkTo(bytesMax, keys)
  }

  #add(record: number, payload: Payload): void {
    const row = this.#rows++
    this.#records = withCapacity(this.#records, this.#rows)
    this.#records[row] = record
    this.#live = withCapacity(this.#live, (this.#rows + 31) >>> 5)
    this.#live[row >>> 5]! |= 1 << (row & 31)
    this.#liveRows++
    for (const [key, column] of this.#columns) column.add(storedValue(payload, key))
  }

  /** Removes the least recently used columns that are not needed, until the others fit; returns false if they do not. */
  #shrinkTo(bytesMax: number, keys: ReadonlySet<string>): boolean {
    let { bytes } = this
    for (const [key, column] of this.#columns) {
      if (bytes <= bytesMax) break
      if (keys.has(key)) continue
      this.#columns.delete(key)
      bytes -= column.bytes
    }
    return bytes <= bytesMax
  }
}

/** Reads the payloads of a collection with record numbers above `after`, in ascending order. */
export function* readPayloads(
  connection: SqliteConnection,
  collection: number,
  after: number,
): Generator<{ record: number; payload: Payload }> {
  const statement = connection.prepare<{ record: number; payload: string }>(
    `SELECT record, payload FROM record WHERE collection = ? AND record > ? ORDER BY record LIMIT ${ROWS_PER_READ}`,
  )
  let last = after
  let rows: { record: number; payload: string }[]
  do {
    rows = statement.all(collection, last)
    for (const row of rows) yield { record: row.record, payload: decodePayload(row) }
    last = rows.at(-1)?.record ?? last
  } while (rows.length === ROWS_PER_READ)
}
