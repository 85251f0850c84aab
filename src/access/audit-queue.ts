import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { RowStore, Write } from '../storage/rows.ts'
import { type AuditRow, tables } from '../storage/tables.ts'

/** Maximum number of records that wait to be written. Additional records are lost. */
const queuedRecordsMax = 1_000
/** Maximum number of records per transaction. It is small, so that other transactions do not wait long. */
const recordsPerGroupMax = 200
const warningIntervalMs = 60_000
/** Queue length at which identical records start to be merged. */
const crowdedLength = queuedRecordsMax / 2
const mergeWindowMs = 10_000

export interface AuditQueueDependencies {
  readonly rows: Pick<RowStore, 'atomic'>
  readonly clock: Clock
  readonly losses: AuditLosses
  /** True to merge identical records into one with a count while the queue is crowded. */
  readonly mergesIdentical: boolean
  /** Called with the number of records that were written together. */
  readonly onStored: (records: number) => void
}

/** Counts lost audit records, and logs a warning about them at most once a minute. */
export class AuditLosses {
  readonly #deps: { clock: Clock; log: Log }
  #unreported = 0
  #reportedAt = Number.NEGATIVE_INFINITY
  /** Number of lost records since the start. */
  total = 0

  constructor(deps: { clock: Clock; log: Log }) {
    this.#deps = deps
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
    log.warn({ lost: this.#unreported, lostSinceStart: this.total, error }, 'audit records were lost')
    this.#unreported = 0
  }
}

interface QueuedRecord {
  readonly row: AuditRow
  /** Key that is equal for identical records; undefined if it was not computed. */
  readonly contentKey: string | undefined
  count: number
}

/**
 * A bounded queue of audit records, which are written in groups in the background. While the queue is crowded,
 * identical records can be merged into one with a count.
 */
export class AuditQueue {
  readonly #deps: AuditQueueDependencies
  readonly #waiting: QueuedRecord[] = []
  /** Queued records whose content key was computed, by that key. */
  readonly #byContent = new Map<string, QueuedRecord>()
  /** The write in progress; undefined while the queue is empty. */
  #pendingWrite: Promise<void> | undefined
  #addedCount = 0
  #settledCount = 0

  constructor(deps: AuditQueueDependencies) {
    this.#deps = deps
  }

  /** Adds a record. Never throws or waits. */
  add(row: AuditRow): void {
    const key = this.#isCrowded ? contentKey(row) : undefined
    if (key !== undefined && this.#mergeIntoIdentical(key)) return
    if (this.#waiting.length >= queuedRecordsMax) {
      this.#deps.losses.add(1)
      return
    }
    const waiting = { row, contentKey: key, count: 1 }
    this.#waiting.push(waiting)
    if (key !== undefined) this.#byContent.set(key, waiting)
    this.#addedCount++
    this.#pendingWrite ??= this.#write()
  }

  /** Resolves when all records added so far are written or lost. */
  async flushed(): Promise<void> {
    const targetCount = this.#addedCount
    while (this.#settledCount < targetCount) await this.#pendingWrite
  }

  get #isCrowded(): boolean {
    return this.#deps.mergesIdentical && this.#waiting.length >= crowdedLength
  }

  /**
   * Increases the count of an identical record in the queue. Returns false if there is no such record, or if it is too
   * old.
   */
  #mergeIntoIdentical(key: string): boolean {
    const identical = this.#byContent.get(key)
    if (!identical || this.#deps.clock.now() - Date.parse(identical.row.at) > mergeWindowMs) return false
    identical.count++
    return true
  }

  async #write(): Promise<void> {
    // Wait, so that records added in the current turn of the event loop join the group.
    await new Promise(setImmediate)
    const group = this.#waiting.splice(0, recordsPerGroupMax)
    for (const { contentKey: key } of group) if (key !== undefined) this.#byContent.delete(key)
    const records = group.reduce((sum, { count }) => sum + count, 0)
    try {
      const outcome = await this.#deps.rows.atomic(
        group.map((waiting): Write => ({ op: 'insert', table: tables.audit, row: withCount(waiting) })),
      )
      if (outcome.ok) this.#deps.onStored(group.length)
      else this.#deps.losses.add(records, outcome)
    } catch (error) {
      this.#deps.losses.add(records, error)
    }
    this.#settledCount += group.length
    this.#pendingWrite = this.#waiting.length > 0 ? this.#write() : undefined
  }
}

function contentKey({ action, outcome, subject, workspaceId, details }: AuditRow): string {
  return JSON.stringify([action, outcome, subject, workspaceId, details])
}

function withCount({ row, count }: QueuedRecord): AuditRow {
  return count === 1 ? row : { ...row, details: { ...row.details, count } }
}
