import { LRUCache } from 'lru-cache'
import type { SqliteConnection } from '../connection.ts'
import { type PostingSegmentRow, readLengths, readRecords, type SlotTable } from './segment-rows.ts'

const SLOT_BYTES_MAX = 64 * 1024 * 1024
/** Estimated bytes of an entry in addition to its numbers. */
const ENTRY_OVERHEAD_BYTES = 400

/** Caches the record numbers and lengths of segments, which never change. */
export class SlotCache {
  readonly #connection: SqliteConnection
  readonly #tables = new LRUCache<number, SlotTable>({
    maxSize: SLOT_BYTES_MAX,
    sizeCalculation: ({ records, lengths }) => ENTRY_OVERHEAD_BYTES + records.byteLength + lengths.byteLength,
  })

  constructor(connection: SqliteConnection) {
    this.#connection = connection
  }

  get(segment: PostingSegmentRow): SlotTable {
    let table = this.#tables.get(segment.id)
    if (!table) {
      table = {
        records: readRecords(this.#connection, segment),
        lengths: readLengths(this.#connection, segment),
      }
      this.#tables.set(segment.id, table)
    }
    return table
  }
}
