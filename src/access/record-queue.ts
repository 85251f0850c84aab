import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'

const warningIntervalMs = 60_000
const mergeWindowMs = 10_000

/** Merges identical records into one with a count while a queue is crowded. */
export interface RecordMerging<Row> {
  /** Returns a key that is equal for identical records. */
  contentKey(row: Row): string
  withCount(row: Row, count: number): Row
}

export interface RecordQueueOptions<Row> {
  readonly clock: Clock
  readonly losses: RecordLosses
  /** Maximum number of records that wait to be written. Additional records are lost. */
  readonly queuedMax: number
  /** Maximum number of records per write. It is small, so that other transactions do not wait long. */
  readonly recordsPerGroupMax: number
  /** Time to wait for more records before an incomplete group is written, in milliseconds. 0 to write at once. */
  readonly delayMs: number
  /** Absent to keep all records. */
  readonly merging?: RecordMerging<Row>
  /** Writes a group of records. They are lost if it rejects. */
  readonly write: (records: readonly Row[]) => Promise<void>
}

/** Counts lost records, and logs a warning about them at most once a minute. */
export class RecordLosses {
  readonly #deps: { clock: Clock; log: Log }
  readonly #warning: string
  #unreported = 0
  #reportedAt = Number.NEGATIVE_INFINITY
  /** Number of lost records since the start. */
  total = 0

  /** @param warning  message of the log line */
  constructor(deps: { clock: Clock; log: Log }, warning: string) {
    this.#deps = deps
    this.#warning = warning
  }

  /** @param error  reason for the loss */
  add(records: number, error?: unknown): void {
    this.total += records
    this.#unreported += records
    if (this.#deps.clock.now() - this.#reportedAt >= warningIntervalMs) this.#warn(error)
  }

  /** Logs losses that were not logged yet. */
  close(): void {
    if (this.#unreported > 0) this.#warn()
  }

  #warn(error?: unknown): void {
    const { clock, log } = this.#deps
    this.#reportedAt = clock.now()
    log.warn({ lost: this.#unreported, lostSinceStart: this.total, error }, this.#warning)
    this.#unreported = 0
  }
}

interface QueuedRecord<Row> {
  readonly row: Row
  readonly queuedAt: number
  /** Key that is equal for identical records; undefined if it was not computed. */
  readonly contentKey: string | undefined
  count: number
}

/**
 * A bounded queue of records, which are written in groups in the background. While the queue is half full, identical
 * records can be merged into one with a count.
 */
export class RecordQueue<Row> {
  readonly #options: RecordQueueOptions<Row>
  readonly #waiting: QueuedRecord<Row>[] = []
  /** Queued records whose content key was computed, by that key. */
  readonly #byContent = new Map<string, QueuedRecord<Row>>()
  /** The write in progress; undefined while the queue is empty. */
  #pendingWrite: Promise<void> | undefined
  /** Ends the wait for more records. */
  #endDelay = () => {}
  #addedCount = 0
  #settledCount = 0
  /** Value of `#settledCount` until which groups are written without a delay. */
  #urgentCount = 0

  constructor(options: RecordQueueOptions<Row>) {
    this.#options = options
  }

  /** Adds a record. Never throws or waits. */
  add(row: Row): void {
    const { clock, losses, queuedMax, recordsPerGroupMax, merging } = this.#options
    const key = this.#waiting.length >= queuedMax / 2 ? merging?.contentKey(row) : undefined
    if (key !== undefined && this.#mergeIntoIdentical(key)) return
    if (this.#waiting.length >= queuedMax) {
      losses.add(1)
      return
    }
    const waiting = { row, queuedAt: clock.now(), contentKey: key, count: 1 }
    this.#waiting.push(waiting)
    if (key !== undefined) this.#byContent.set(key, waiting)
    this.#addedCount++
    this.#pendingWrite ??= this.#write()
    if (this.#waiting.length >= recordsPerGroupMax) this.#endDelay()
  }

  /** Resolves when all records added so far are written or lost. */
  async flushed(): Promise<void> {
    const targetCount = this.#addedCount
    this.#urgentCount = targetCount
    this.#endDelay()
    while (this.#settledCount < targetCount) await this.#pendingWrite
  }

  /**
   * Increases the count of an identical record in the queue. Returns false if there is no such record, or if it is too
   * old.
   */
  #mergeIntoIdentical(key: string): boolean {
    const identical = this.#byContent.get(key)
    if (!identical || this.#options.clock.now() - identical.queuedAt > mergeWindowMs) return false
    identical.count++
    return true
  }

  async #write(): Promise<void> {
    const { losses, recordsPerGroupMax, merging, write } = this.#options
    await this.#delay()
    const group = this.#waiting.splice(0, recordsPerGroupMax)
    for (const { contentKey: key } of group) if (key !== undefined) this.#byContent.delete(key)
    try {
      await write(
        group.map(({ row, count }) => (count === 1 || !merging ? row : merging.withCount(row, count))),
      )
    } catch (error) {
      losses.add(
        group.reduce((sum, { count }) => sum + count, 0),
        error,
      )
    }
    this.#settledCount += group.length
    this.#pendingWrite = this.#waiting.length > 0 ? this.#write() : undefined
  }

  async #delay(): Promise<void> {
    const { clock, delayMs, recordsPerGroupMax } = this.#options
    // Wait, so that records added in the current turn of the event loop join the group.
    await new Promise(setImmediate)
    const isUrgent = this.#settledCount < this.#urgentCount || this.#waiting.length >= recordsPerGroupMax
    if (delayMs === 0 || isUrgent) return
    await new Promise<void>(resolve => {
      const cancel = clock.after(delayMs, resolve)
      this.#endDelay = () => {
        cancel()
        resolve()
      }
    })
    this.#endDelay = () => {}
  }
}
