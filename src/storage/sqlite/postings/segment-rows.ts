import { damagedStore } from '../../damaged-store.ts'
import { indexOfSorted } from '../../record-set.ts'
import type { SqliteConnection } from '../connection.ts'

/** Bytes and slots of a page of `posting_classes`. */
const CLASS_BYTES = 4
const CLASSES_PER_PAGE = 4_096

/** Row of `posting_segment` of a live segment, which searches read (state 1). */
export interface PostingSegmentRow {
  readonly id: number
  readonly stamp: number
  readonly firstRecord: number
  readonly lastRecord: number
  readonly slots: number
  readonly deleted: number
  /** Bytes of the blocks. */
  readonly bytes: number
}

/** Data of the slots of a segment. It never changes. */
export interface SlotTable {
  /** Record numbers minus `firstRecord` of the segment, ascending. */
  readonly records: Uint32Array
  /** Number of words in title and text. */
  readonly lengths: Uint32Array
}

const columns = 'id, stamp, first_record AS firstRecord, last_record AS lastRecord, slots, deleted, bytes'

/** Returns the segments that searches read, by ascending records. */
export function listLiveSegments(connection: SqliteConnection, index: number): PostingSegmentRow[] {
  return connection
    .prepare<PostingSegmentRow>(
      `SELECT ${columns} FROM posting_segment WHERE posting_index = ? AND state = 1 ORDER BY first_record`,
    )
    .all(index)
}

/** Returns the segment whose range of record numbers includes a record. The segment does not always contain the record. */
export function segmentOfRecord(
  connection: SqliteConnection,
  index: number,
  record: number,
): PostingSegmentRow | undefined {
  const found = connection
    .prepare<PostingSegmentRow>(
      `SELECT ${columns} FROM posting_segment WHERE posting_index = ? AND state = 1 AND first_record <= ?
        ORDER BY first_record DESC LIMIT 1`,
    )
    .get(index, record)
  return found && found.lastRecord >= record ? found : undefined
}

/**
 * Returns the record number minus `firstRecord` of each slot.
 *
 * @throws control_plane_unavailable  the row is missing or damaged
 */
export function readRecords(
  connection: SqliteConnection,
  segment: { id: number; slots: number },
): Uint32Array {
  return readSlotColumn(connection, segment, 'records')
}

/**
 * Returns the number of words in title and text of each slot.
 *
 * @throws control_plane_unavailable  the row is missing or damaged
 */
export function readLengths(
  connection: SqliteConnection,
  segment: { id: number; slots: number },
): Uint32Array {
  return readSlotColumn(connection, segment, 'lengths')
}

function readSlotColumn(
  connection: SqliteConnection,
  { id, slots }: { id: number; slots: number },
  column: 'records' | 'lengths',
): Uint32Array {
  const row = connection
    .prepare<{ bytes: Buffer }>(`SELECT ${column} AS bytes FROM posting_slots WHERE segment = ?`)
    .get(id)
  if (row?.bytes.length !== slots * Uint32Array.BYTES_PER_ELEMENT)
    throw damagedStore(`segment ${id} of posting_slots`)
  return uint32sOf(row.bytes)
}

/** Stores the slots of a new segment, and the zeros in `posting_classes` that earlier versions read. */
export function insertSlots(
  connection: SqliteConnection,
  segment: number,
  { records, lengths }: SlotTable,
): void {
  connection
    .prepare('INSERT INTO posting_slots (segment, records, lengths) VALUES (?, ?, ?)')
    .run(segment, bytesOf(records), bytesOf(lengths))
  const insertPage = connection.prepare(
    'INSERT INTO posting_classes (segment, page, classes) VALUES (?, ?, zeroblob(?))',
  )
  for (let start = 0; start < records.length; start += CLASSES_PER_PAGE)
    insertPage.run(
      segment,
      start / CLASSES_PER_PAGE,
      CLASS_BYTES * Math.min(CLASSES_PER_PAGE, records.length - start),
    )
}

/** Returns the slot of a record; -1 if the segment does not contain it. */
export function slotOf(firstRecord: number, records: Uint32Array, record: number): number {
  return indexOfSorted(records, record - firstRecord)
}

/**
 * Returns one bit per slot, set if the record is deleted; undefined if nothing is deleted.
 *
 * @throws control_plane_unavailable  the row is missing or damaged
 */
export function readDeletions(
  connection: SqliteConnection,
  { id, slots, deleted }: PostingSegmentRow,
): Uint8Array | undefined {
  if (deleted === 0) return undefined
  const row = connection
    .prepare<{ bits: Buffer }>('SELECT bits FROM posting_deletions WHERE segment = ?')
    .get(id)
  if (row?.bits.length !== bitmapByteLength(slots)) throw damagedStore(`segment ${id} of posting_deletions`)
  return row.bits
}

export function storeDeletions(
  connection: SqliteConnection,
  segment: number,
  bits: Uint8Array,
  deleted: number,
): void {
  connection
    .prepare('INSERT OR REPLACE INTO posting_deletions (segment, bits) VALUES (?, ?)')
    .run(segment, bits)
  connection.prepare('UPDATE posting_segment SET deleted = ? WHERE id = ?').run(deleted, segment)
}

export function bitmapByteLength(slots: number): number {
  return (slots + 7) >> 3
}

export function hasBit(bits: Uint8Array, slot: number): boolean {
  return (bits[slot >> 3]! & (1 << (slot & 7))) !== 0
}

export function setBit(bits: Uint8Array, slot: number): void {
  bits[slot >> 3]! |= 1 << (slot & 7)
}

function bytesOf(values: Uint32Array): Buffer {
  return Buffer.from(values.buffer, values.byteOffset, values.byteLength)
}

/** Returns stored bytes as 32-bit integers: a view if their alignment allows it, and a copy otherwise. */
function uint32sOf(bytes: Buffer): Uint32Array {
  const length = Math.floor(bytes.length / Uint32Array.BYTES_PER_ELEMENT)
  if (bytes.byteOffset % Uint32Array.BYTES_PER_ELEMENT === 0)
    return new Uint32Array(bytes.buffer, bytes.byteOffset, length)
  return new Uint32Array(Uint8Array.from(bytes).buffer, 0, length)
}
