import { LRUCache } from 'lru-cache'
import type { SearchConstraints } from '../content.ts'
import { conditionsOf, createMatcher, type Filter, joinFilters } from '../filter.ts'
import { type SelectedRecords, SortedRecords } from '../record-set.ts'
import type { SqliteConnection } from './connection.ts'
import { type FilteredCollection, PayloadColumns, readPayloads } from './payload-columns.ts'

/** Maximum bytes of payload columns in memory, over all collections. */
const COLUMN_BYTES_MAX = 64 * 1024 * 1024
/** Maximum bytes of cached sets of records. Sets are cached, because a search uses a set several times. */
const SET_BYTES_MAX = 32 * 1024 * 1024
/** Estimated bytes of a set in addition to its records. */
const SET_OVERHEAD_BYTES = 500
const OVERSIZED_MAX = 1_000

/**
 * Computes the records that a caller may see and that match a filter. Loads the payload values of a key at the first
 * filter on it, and updates them before each later filter.
 */
export class AllowedRecords {
  readonly #connection: SqliteConnection
  readonly #columnBytesMax: number
  readonly #sets = new LRUCache<string, SortedRecords | SelectedRecords>({
    maxSize: SET_BYTES_MAX,
    sizeCalculation: ({ bytes }) => bytes + SET_OVERHEAD_BYTES,
  })
  /** Columns by collection, least recently used first. */
  readonly #columns = new Map<number, PayloadColumns>()
  /** Number of records of a collection when the columns for a list of keys exceeded the memory limit. */
  readonly #oversized = new LRUCache<string, number>({ max: OVERSIZED_MAX })

  constructor(connection: SqliteConnection, columnBytesMax = COLUMN_BYTES_MAX) {
    this.#connection = connection
    this.#columnBytesMax = columnBytesMax
  }

  /**
   * Returns the records that the constraints allow; undefined if they allow all records of the collection. Call it inside
   * a transaction that has read `collection`.
   */
  allowed(
    collection: FilteredCollection,
    { visibility, filter }: SearchConstraints,
  ): SortedRecords | SelectedRecords | undefined {
    const joined = joinFilters(visibility.filter, filter)
    if (!joined) return undefined
    const cacheKey = JSON.stringify([collection.id, collection.version, joined])
    const cached = this.#sets.get(cacheKey)
    if (cached) return cached
    const set = this.#columnsFor(collection, joined)?.matching(joined) ?? this.#read(collection.id, joined)
    this.#sets.set(cacheKey, set)
    return set
  }

  /** Bytes of memory that the payload columns take. */
  get columnBytes(): number {
    return [...this.#columns.values()].reduce((sum, columns) => sum + columns.bytes, 0)
  }

  /** Returns current columns for all keys of a filter; undefined if they do not fit into memory. */
  #columnsFor(collection: FilteredCollection, filter: Filter): PayloadColumns | undefined {
    const keys = new Set(Array.from(conditionsOf(filter), ({ key }) => key))
    const bytesMax = this.#columnBytesMax
    const list = JSON.stringify([collection.id, ...[...keys].sort()])
    // Tries again when the collection has half as many records.
    if (2 * collection.records >= (this.#oversized.get(list) ?? Number.POSITIVE_INFINITY)) return undefined
    let columns = this.#columns.get(collection.id)
    this.#columns.delete(collection.id)
    if (!columns?.use(keys) || !columns.update(collection, keys, bytesMax))
      columns = PayloadColumns.load(this.#connection, collection, {
        keys,
        optional: columns?.keys ?? [],
        bytesMax,
      })
    if (!columns) {
      this.#oversized.set(list, collection.records)
      return undefined
    }
    this.#columns.set(collection.id, columns)
    this.#evict()
    return columns
  }

  /** Removes the columns of the least recently used collections until the others fit into the memory limit. */
  #evict(): void {
    let bytes = this.columnBytes
    for (const [collection, columns] of this.#columns) {
      if (bytes <= this.#columnBytesMax) return
      this.#columns.delete(collection)
      bytes -= columns.bytes
    }
  }

  /** Evaluates a filter on the payloads of all records. */
  #read(collection: number, filter: Filter): SortedRecords {
    const matches = createMatcher(filter)
    const records: number[] = []
    for (const { record, payload } of readPayloads(this.#connection, collection, 0))
      if (matches(payload)) records.push(record)
    return new SortedRecords(Float64Array.from(records))
  }
}
