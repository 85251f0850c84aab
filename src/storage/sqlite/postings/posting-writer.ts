import type { SqliteConnection } from '../connection.ts'
import {
  findActivePostingIndex,
  findPostingIndex,
  incrementVersion,
  listPostingIndexes,
  type PostingAnalysis,
  type PostingIndexKey,
  type PostingIndexRow,
} from './index-rows.ts'
import { RECORD_SPAN_MAX } from './schema.ts'
import { insertSegment, type PostingRecord } from './segment-builder.ts'
import {
  bitmapByteLength,
  hasBit,
  type PostingSegmentRow,
  readDeletions,
  readRecords,
  segmentOfRecord,
  setBit,
  slotOf,
  storeDeletions,
} from './segment-rows.ts'

/** Maximum number of records in a new segment. More per transaction would hold the write lock for too long. */
export const POSTING_SLICE_MAX = 256

/** Slots of one segment. */
interface SegmentSlots {
  readonly segment: PostingSegmentRow
  readonly slots: readonly number[]
}

/**
 * Changes the postings of collections. Every method must run inside a write transaction of the caller, and takes effect
 * with its commit.
 */
export class PostingWriter {
  readonly #connection: SqliteConnection

  constructor(connection: SqliteConnection) {
    this.#connection = connection
  }

  /** Creates an empty index, which no search reads until it is activated. Does nothing if it exists. */
  create({ collection, generation }: PostingIndexKey, { language, analyzer }: PostingAnalysis): void {
    this.#connection
      .prepare(
        'INSERT OR IGNORE INTO posting_index (collection, generation, language, analyzer) VALUES (?, ?, ?, ?)',
      )
      .run(collection, generation, language, analyzer)
  }

  /** Makes searches read this index, and drops the one that they read before. */
  activate(key: PostingIndexKey): void {
    const index = this.#require(key)
    const old = findActivePostingIndex(this.#connection, key.collection)
    if (old?.id === index.id) return
    if (old) this.#drop(old)
    this.#connection.prepare('UPDATE posting_index SET active = 1 WHERE id = ?').run(index.id)
  }

  /** Drops one index. Merges delete its rows later, a few at a time. */
  drop(key: PostingIndexKey): void {
    const index = findPostingIndex(this.#connection, key)
    if (index) this.#drop(index)
  }

  /** Drops all generations of a collection. */
  dropCollection(collection: number): void {
    for (const index of listPostingIndexes(this.#connection, collection)) this.#drop(index)
  }

  /**
   * Adds records. Their numbers must ascend, and must be higher than those of all records that were ever added to the index.
   * Pass at most {@link POSTING_SLICE_MAX} records per transaction.
   *
   * @throws RangeError  a number does not ascend, or is out of range
   */
  add(key: PostingIndexKey, records: readonly PostingRecord[]): void {
    if (records.length === 0) return
    const index = this.#require(key)
    requireValidRecords(records, index.lastRecord)
    const version = incrementVersion(this.#connection, index.id)
    for (const slice of slicesOf(records)) insertSegment(this.#connection, index.id, version, slice)
    this.#connection
      .prepare('UPDATE posting_index SET last_record = ? WHERE id = ?')
      .run(records.at(-1)!.record, index.id)
  }

  /** Deletes records; returns how many there were. Ignores missing ones. */
  remove(key: PostingIndexKey, records: readonly number[]): number {
    const index = this.#require(key)
    let removed = 0
    for (const { segment, slots } of this.#locate(index, records)) {
      const stored = readDeletions(this.#connection, segment)
      const bits = stored ?? new Uint8Array(bitmapByteLength(segment.slots))
      const before = removed
      for (const slot of slots) {
        if (hasBit(bits, slot)) continue
        setBit(bits, slot)
        removed++
      }
      if (removed === before) continue
      storeDeletions(this.#connection, segment.id, bits, segment.deleted + removed - before)
      this.#stamp(index, segment)
    }
    return removed
  }

  #require(key: PostingIndexKey): PostingIndexRow {
    const index = findPostingIndex(this.#connection, key)
    if (!index) throw new RangeError(`collection ${key.collection} has no posting index ${key.generation}`)
    return index
  }

  #drop({ id }: PostingIndexRow): void {
    this.#connection.prepare('UPDATE posting_segment SET state = 2 WHERE posting_index = ?').run(id)
    this.#connection.prepare('DELETE FROM posting_index WHERE id = ?').run(id)
  }

  /** Yields the slots of records, by segment. */
  *#locate({ id }: PostingIndexRow, records: readonly number[]): Generator<SegmentSlots, void, undefined> {
    const sorted = [...records].sort((a, b) => a - b)
    for (let at = 0; at < sorted.length; ) {
      const segment = segmentOfRecord(this.#connection, id, sorted[at]!)
      if (!segment) {
        at++
        continue
      }
      const stored = readRecords(this.#connection, segment)
      const slots = []
      for (; at < sorted.length && sorted[at]! <= segment.lastRecord; at++) {
        const slot = slotOf(segment.firstRecord, stored, sorted[at]!)
        if (slot >= 0) slots.push(slot)
      }
      yield { segment, slots }
    }
  }

  #stamp({ id }: PostingIndexRow, segment: PostingSegmentRow): void {
    const version = incrementVersion(this.#connection, id)
    this.#connection.prepare('UPDATE posting_segment SET stamp = ? WHERE id = ?').run(version, segment.id)
  }
}

function requireValidRecords(records: readonly PostingRecord[], lastRecord: number): void {
  let last = lastRecord
  for (const { record } of records) {
    if (!Number.isSafeInteger(record) || record <= last)
      throw new RangeError(`record ${record} does not follow record ${last}`)
    last = record
  }
}

function* slicesOf(records: readonly PostingRecord[]): Generator<readonly PostingRecord[], void, undefined> {
  for (let start = 0; start < records.length; ) {
    const first = records[start]!.record
    let end = start + 1
    while (
      end < records.length &&
      end - start < POSTING_SLICE_MAX &&
      records[end]!.record - first <= RECORD_SPAN_MAX
    )
      end++
    yield records.slice(start, end)
    start = end
  }
}
