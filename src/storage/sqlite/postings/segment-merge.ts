import type { SqliteConnection } from '../connection.ts'
import { ByteWriter } from './byte-writer.ts'
import { incrementVersion } from './index-rows.ts'
import { damagedBlock, writePosting } from './posting-list.ts'
import {
  bitmapByteLength,
  hasBit,
  insertSlots,
  listLiveSegments,
  type PostingSegmentRow,
  readDeletions,
  readLengths,
  readRecords,
  setBit,
  storeDeletions,
} from './segment-rows.ts'
import { BlockPacker } from './term-blocks.ts'
import { mergeTerms, TermCursor } from './term-cursor.ts'

/** Bytes after which a step ends. A large term or the slots of a large segment can make a step larger. */
export const MERGE_STEP_BYTES = 128 * 1024
/** New slot of a record that the merge leaves out, because it is deleted. */
const NO_SLOT = -1

/** A segment that is merged, with the new slots of its records. */
interface MergeSource {
  readonly segment: PostingSegmentRow
  /** New slot of each old slot, or NO_SLOT. */
  readonly newSlots: Int32Array
}

/**
 * Merges adjacent segments of an index into one, in steps that each run in a transaction. Searches read the sources
 * until the last step, which replaces them with the new segment.
 */
export class SegmentMerge {
  readonly index: number
  /** The segment being built. */
  readonly segment: number
  readonly #connection: SqliteConnection
  readonly #sources: readonly MergeSource[]
  /** Number of slots of the new segment. */
  readonly #slotCount: number
  readonly #steps: Iterator<void, void, undefined>
  readonly #stepBytesMax: number
  #progress = 0
  /** Bytes of the blocks written so far. */
  writtenBytes = 0
  /** Bytes written in the current step. */
  #stepBytes = 0

  /** Begins a merge, in the transaction of the first step. */
  constructor(
    connection: SqliteConnection,
    index: number,
    segments: readonly PostingSegmentRow[],
    stepBytesMax: number,
  ) {
    this.#connection = connection
    this.index = index
    this.#stepBytesMax = stepBytesMax
    let slotCount = 0
    this.#sources = segments.map(segment => {
      const newSlots = assignSlots(connection, segment, slotCount)
      slotCount = newSlots.reduce((next, slot) => Math.max(next, slot + 1), slotCount)
      return { segment, newSlots }
    })
    this.#slotCount = slotCount
    this.segment = Number(
      connection
        .prepare(
          `INSERT INTO posting_segment (posting_index, state, stamp, first_record, last_record, slots)
            VALUES (?, 0, 0, ?, ?, ?)`,
        )
        .run(index, segments[0]!.firstRecord, segments.at(-1)!.lastRecord, slotCount).lastInsertRowid,
    )
    this.#steps = this.#run()
  }

  /**
   * Runs the next step.
   *
   * @returns false if the merge has ended: it is complete, or its segment is no longer as the previous step left it
   *          because a transaction was rolled back or another process took over
   */
  step(): boolean {
    const { changes } = this.#connection
      .prepare(
        `UPDATE posting_segment SET progress = progress + 1
          WHERE id = ? AND posting_index = ? AND state = 0 AND progress = ?`,
      )
      .run(this.segment, this.index, this.#progress)
    if (changes === 0) return false
    this.#progress++
    return this.#steps.next().done !== true
  }

  *#run(): Generator<void, void, undefined> {
    if (this.#slotCount > 0) {
      this.#copySlots()
      if (this.#isStepFull(3 * this.#slotCount * Uint32Array.BYTES_PER_ELEMENT)) yield
      yield* this.#copyBlocks()
    }
    this.#replaceSources()
  }

  /** Counts bytes written; returns true if the rest should be written in another transaction. */
  #isStepFull(bytes: number): boolean {
    this.#stepBytes += bytes
    if (this.#stepBytes < this.#stepBytesMax) return false
    this.#stepBytes = 0
    return true
  }

  #copySlots(): void {
    const records = new Uint32Array(this.#slotCount)
    const lengths = new Uint32Array(this.#slotCount)
    const first = this.#sources[0]!.segment.firstRecord
    for (const { segment, newSlots } of this.#sources) {
      const oldRecords = readRecords(this.#connection, segment)
      const oldLengths = readLengths(this.#connection, segment)
      for (const [old, slot] of newSlots.entries()) {
        if (slot === NO_SLOT) continue
        records[slot] = segment.firstRecord - first + oldRecords[old]!
        lengths[slot] = oldLengths[old]!
      }
    }
    insertSlots(this.#connection, this.segment, { records, lengths })
  }

  *#copyBlocks(): Generator<void, void, undefined> {
    const cursors = this.#sources.map(({ segment }) => new TermCursor(this.#connection, segment.id))
    const newSlotsOf = new Map(this.#sources.map(({ segment, newSlots }) => [segment.id, newSlots]))
    const packer = new BlockPacker(this.#connection, this.segment)
    const postings = new ByteWriter()
    for (const { term, parts } of mergeTerms(cursors)) {
      postings.clear()
      let count = 0
      let previous = -1
      for (const part of parts) {
        const newSlots = newSlotsOf.get(part.segment)!
        const cursor = part.block.openPostings()
        while (cursor.next()) {
          const slot = newSlots[cursor.slot]
          if (slot === NO_SLOT) continue
          if (slot === undefined) throw damagedBlock(part.segment)
          writePosting(postings, previous, slot, cursor.textCount, cursor.titleCount)
          previous = slot
          count++
        }
      }
      if (count > 0) packer.add(term, count, postings)
      const added = packer.storedBytes - this.writtenBytes
      if (added === 0) continue
      this.writtenBytes = packer.storedBytes
      if (this.#isStepFull(added)) yield
    }
    packer.flush()
    this.writtenBytes = packer.storedBytes
    this.#connection
      .prepare('UPDATE posting_segment SET bytes = ? WHERE id = ?')
      .run(this.writtenBytes, this.segment)
  }

  /** Makes the new segment live, with the deletions since the merge began. */
  #replaceSources(): void {
    const isSource = new Set(this.#sources.map(({ segment }) => segment.id))
    const current = listLiveSegments(this.#connection, this.index).filter(({ id }) => isSource.has(id))
    if (this.#slotCount > 0 && this.#sources.some(({ segment }, at) => segment.stamp !== current[at]!.stamp))
      this.#copyDeletions(current)
    const version = incrementVersion(this.#connection, this.index)
    const setState = this.#connection.prepare('UPDATE posting_segment SET state = ?, stamp = ? WHERE id = ?')
    for (const id of isSource) setState.run(2, version, id)
    setState.run(this.#slotCount > 0 ? 1 : 2, version, this.segment)
  }

  #copyDeletions(current: readonly PostingSegmentRow[]): void {
    const bits = new Uint8Array(bitmapByteLength(this.#slotCount))
    let deleted = 0
    for (const [at, { newSlots }] of this.#sources.entries()) {
      const oldBits = readDeletions(this.#connection, current[at]!)
      if (!oldBits) continue
      for (const [old, slot] of newSlots.entries()) {
        if (slot === NO_SLOT || !hasBit(oldBits, old)) continue
        setBit(bits, slot)
        deleted++
      }
    }
    if (deleted > 0) storeDeletions(this.#connection, this.segment, bits, deleted)
  }
}

/** Returns the new slot of each old slot: consecutive numbers from `next` on, and NO_SLOT for deleted records. */
function assignSlots(connection: SqliteConnection, segment: PostingSegmentRow, next: number): Int32Array {
  const deletions = readDeletions(connection, segment)
  const slots = new Int32Array(segment.slots)
  let slot = next
  for (let old = 0; old < slots.length; old++)
    slots[old] = deletions && hasBit(deletions, old) ? NO_SLOT : slot++
  return slots
}
