import type { SqliteConnection } from '../connection.ts'
import { type CompactionRange, planCompaction, planMerge } from './merge-plan.ts'
import { MERGE_STEP_BYTES, SegmentMerge } from './segment-merge.ts'
import { listLiveSegments } from './segment-rows.ts'

/** Duration of the lease of an index. Another process can merge the index after the lease has expired. */
const LEASE_MS = 30_000
const BLOCKS_DELETED_AT_ONCE = 64

/** Result of a step of a compaction, and the range that is left. */
export interface CompactionStep extends CompactionRange {
  readonly outcome: 'progressed' | 'waiting' | 'done'
  /** Bytes that the step wrote. */
  readonly writtenBytes: number
}

/**
 * Merges segments, and deletes those that were merged or dropped, over all collections.
 *
 * Several processes can each have a merger. Each index has a lease, which every step renews, so that only one process merges
 * it at a time.
 */
export class PostingMerger {
  readonly #connection: SqliteConnection
  readonly #owner: string
  readonly #stepBytesMax: number
  #merge: SegmentMerge | undefined

  /**
   * @param owner         unique for each merger, in all processes
   * @param stepBytesMax  bytes after which a step ends
   */
  constructor(connection: SqliteConnection, owner: string, stepBytesMax = MERGE_STEP_BYTES) {
    this.#connection = connection
    this.#stepBytesMax = stepBytesMax
    this.#owner = owner
  }

  /**
   * Does a bounded piece of work: reads and writes about 128 KB. Must run inside a write transaction. If the caller rolls
   * it back, the next step starts the merge again.
   *
   * @param now  time in milliseconds
   * @returns false if there is nothing to do
   */
  step(now: number): boolean {
    return this.#continue(now) || this.#deleteDropped() || this.#begin(now)
  }

  /**
   * Like {@link step}, but merges all segments of one index in a range of records into as few as possible, without deleted
   * records. Also continues work on other indexes.
   *
   * @returns the range that is left, and whether the step progressed, has to wait for another process, or found nothing to do
   */
  compact(index: number, range: CompactionRange, now: number): CompactionStep {
    const merge = this.#merge
    const bytesBefore = merge?.writtenBytes ?? 0
    if (this.#continue(now) || this.#deleteDropped())
      return { ...range, outcome: 'progressed', writtenBytes: (merge?.writtenBytes ?? 0) - bytesBefore }
    const plan = planCompaction(listLiveSegments(this.#connection, index), range)
    if (!plan) {
      this.#releaseLease(index)
      return { ...range, outcome: 'done', writtenBytes: 0 }
    }
    if (!this.#takeLease(index, now)) return { ...range, outcome: 'waiting', writtenBytes: 0 }
    this.#merge = new SegmentMerge(this.#connection, index, plan, this.#stepBytesMax)
    return { ...range, after: plan.at(-1)!.lastRecord, outcome: 'progressed', writtenBytes: 0 }
  }

  /** Continues the current merge; returns false if no merge is running. */
  #continue(now: number): boolean {
    const merge = this.#merge
    this.#merge = undefined
    if (!merge) return false
    if (this.#renewLease(merge.index, now) && merge.step()) this.#merge = merge
    return true
  }

  /** Finds an index to merge, and begins. */
  #begin(now: number): boolean {
    const due = this.#connection
      .prepare<{ id: number }>(
        `SELECT id FROM posting_index WHERE merge_due = 1 AND (lease_owner IS NULL OR lease_owner = ? OR lease_until <= ?)
          LIMIT 1`,
      )
      .get(this.#owner, now)
    if (!due) return false
    this.#takeLease(due.id, now)
    const plan = planMerge(listLiveSegments(this.#connection, due.id))
    if (plan) this.#merge = new SegmentMerge(this.#connection, due.id, plan, this.#stepBytesMax)
    else {
      this.#connection.prepare('UPDATE posting_index SET merge_due = 0 WHERE id = ?').run(due.id)
      this.#releaseLease(due.id)
    }
    return true
  }

  /** Takes a lease that is free, and drops the segments that its last owner left unfinished. */
  #takeLease(index: number, now: number): boolean {
    const { changes } = this.#connection
      .prepare(
        `UPDATE posting_index SET lease_owner = ?, lease_until = ?
          WHERE id = ? AND (lease_owner IS NULL OR lease_owner = ? OR lease_until <= ?)`,
      )
      .run(this.#owner, now + LEASE_MS, index, this.#owner, now)
    if (changes === 0) return false
    this.#connection
      .prepare('UPDATE posting_segment SET state = 2 WHERE posting_index = ? AND state = 0')
      .run(index)
    return true
  }

  /** Returns false if another process has taken the lease. */
  #renewLease(index: number, now: number): boolean {
    const { changes } = this.#connection
      .prepare('UPDATE posting_index SET lease_until = ? WHERE id = ? AND lease_owner = ?')
      .run(now + LEASE_MS, index, this.#owner)
    return changes > 0
  }

  #releaseLease(index: number): void {
    this.#connection
      .prepare(
        'UPDATE posting_index SET lease_owner = NULL, lease_until = 0 WHERE id = ? AND lease_owner = ?',
      )
      .run(index, this.#owner)
  }

  /** Deletes rows of segments that searches no longer read; returns false if there are none. */
  #deleteDropped(): boolean {
    let blocks = 0
    while (blocks < BLOCKS_DELETED_AT_ONCE) {
      const dropped = this.#connection
        .prepare<{ id: number }>('SELECT id FROM posting_segment WHERE state = 2 LIMIT 1')
        .get()
      if (!dropped) return blocks > 0
      // Counts the segment as a block, because it has other rows too.
      blocks += 1 + this.#deleteSegment(dropped.id, BLOCKS_DELETED_AT_ONCE - blocks)
    }
    return true
  }

  /**
   * Deletes at most `blocksMax` blocks of a segment, and its other rows after the last block. Returns the number of deleted
   * blocks.
   */
  #deleteSegment(segment: number, blocksMax: number): number {
    const { changes } = this.#connection
      .prepare(
        `DELETE FROM posting_block WHERE rowid IN (
          SELECT rowid FROM posting_block WHERE segment = ? LIMIT ?)`,
      )
      .run(segment, blocksMax)
    if (changes === blocksMax) return changes
    for (const table of ['posting_slots', 'posting_deletions', 'posting_classes'])
      this.#connection.prepare(`DELETE FROM ${table} WHERE segment = ?`).run(segment)
    this.#connection.prepare('DELETE FROM posting_segment WHERE id = ?').run(segment)
    return changes
  }
}
