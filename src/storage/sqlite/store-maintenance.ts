import { type Clock, systemClock } from '../../base/clock.ts'
import { newId } from '../../base/id.ts'
import { WbError } from '../../contract/errors.ts'
import type { CollectionKey, LexicalIndexState } from '../content.ts'
import { requireCollection } from './collections.ts'
import type { CommitQueue } from './commit-queue.ts'
import type { SqliteConnection } from './connection.ts'
import { convertStoreError } from './faults.ts'
import type { PostingBackfill } from './posting-backfill.ts'
import { findActivePostingIndex } from './postings/index-rows.ts'
import type { CompactionRange } from './postings/merge-plan.ts'
import { type CompactionStep, PostingMerger } from './postings/posting-merger.ts'
import { hasQuantizationWork, type VectorQuantization } from './vector-quantization.ts'

/** Pause between a write and the check for work, so that many small writes cause only one check. */
const QUIET_MS = 250

/** Returns true if there is background work. */
export function hasMaintenanceWork(connection: SqliteConnection): boolean {
  return hasPostingWork(connection) || hasQuantizationWork(connection)
}

/** Returns true if posting indexes must be filled, or segments merged or deleted. */
function hasPostingWork(connection: SqliteConnection): boolean {
  const { due } = connection
    .prepare<{ due: 0 | 1 }>(
      `SELECT EXISTS (SELECT 1 FROM collection WHERE reindex = 1)
        OR EXISTS (SELECT 1 FROM posting_index WHERE merge_due = 1)
        OR EXISTS (SELECT 1 FROM posting_segment WHERE state = 2) AS due`,
    )
    .get()!
  return due === 1
}

/**
 * Fills and merges posting indexes, then quantizes vectors, in the background, in short transactions between other writes.
 */
export class StoreMaintenance {
  readonly #connection: SqliteConnection
  readonly #queue: CommitQueue
  readonly #backfill: PostingBackfill
  readonly #quantization: VectorQuantization
  readonly #clock: Clock
  readonly #merger: PostingMerger
  #failure: LexicalIndexState['failure'] = null
  #isStarted = false
  #running: Promise<void> | undefined
  #cancelTimer: (() => void) | undefined

  constructor(
    connection: SqliteConnection,
    queue: CommitQueue,
    backfill: PostingBackfill,
    quantization: VectorQuantization,
    clock: Clock = systemClock,
  ) {
    this.#connection = connection
    this.#queue = queue
    this.#backfill = backfill
    this.#quantization = quantization
    this.#clock = clock
    this.#merger = new PostingMerger(connection, newId())
  }

  /** Last failure of the work; null if it has succeeded since then. */
  get failure(): LexicalIndexState['failure'] {
    return this.#failure
  }

  /** Starts the work, which continues after later calls of {@link wake}. */
  start(): void {
    this.#isStarted = true
    this.#begin()
  }

  /** Schedules a check for work. Does nothing before {@link start}. */
  wake(): void {
    if (!this.#isStarted || this.#running || this.#cancelTimer) return
    this.#cancelTimer = this.#clock.after(QUIET_MS, () => {
      this.#cancelTimer = undefined
      this.#begin()
    })
  }

  /**
   * Does a step of a compaction of a collection, see {@link PostingMerger.compact}.
   *
   * @param range  range that the previous step returned; undefined for the first step
   * @throws collection_unavailable  there is no such collection
   */
  compact(key: CollectionKey, range: CompactionRange | undefined): Promise<CompactionStep> {
    const run = () => {
      const collection = requireCollection(this.#connection, key)
      const index = findActivePostingIndex(this.#connection, collection.id)
      if (!index) return { after: 0, through: 0, outcome: 'done' as const, writtenBytes: 0 }
      const left = range ?? { after: 0, through: index.lastRecord }
      return this.#merger.compact(index.id, left, this.#clock.now())
    }
    return this.#queue.run({ run, shouldCommit: () => true })
  }

  /** Ends after the current step. */
  async close(): Promise<void> {
    this.#isStarted = false
    this.#cancelTimer?.()
    await this.#running
  }

  #begin(): void {
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined
    })
  }

  /** Works until nothing is left. After a failure, such as a full disk, the next write tries again. */
  async #run(): Promise<void> {
    try {
      while (this.#isStarted && (await this.#step())) this.#failure = null
      this.#failure = null
    } catch (error) {
      // Searches and writes do not depend on this work, so only the statistics report its failure.
      const fault = convertStoreError(error)
      const message = fault instanceof WbError ? fault.message : 'an unexpected error'
      this.#failure = { at: this.#clock.now(), message }
    }
  }

  /** Returns false if nothing is left to do. */
  async #step(): Promise<boolean> {
    if (!hasPostingWork(this.#connection)) return this.#quantization.step()
    const isFilling = await this.#backfill.step()
    if (isFilling || !this.#isStarted) return true
    const hasMerged = await this.#queue.run({
      run: () => this.#merger.step(this.#clock.now()),
      shouldCommit: () => true,
    })
    return hasMerged || this.#quantization.step()
  }
}
