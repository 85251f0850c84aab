import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { RowStore, Write } from '../storage/rows.ts'
import { type AuditRow, tables } from '../storage/tables.ts'

/** Maximum number of records that wait to be written. Further records are lost. */
const queuedRecordsMax = 1_000
/** Maximum number of records per transaction, so that other transactions do not wait long. */
const recordsPerGroupMax = 200
const warningIntervalMs = 60_000
/** Queue length from which identical records are merged. */
const crowdedLength = queuedRecordsMax / 2
const mergeWindowMs = 10_000

export interface AuditQueueParts {
  readonly rows: Pick<RowStore, 'atomic'>
  readonly clock: Clock
  readonly losses: AuditLosses
  /** True if identical records are merged into one with a count while the queue is crowded. */
  readonly mergesIdentical: boolean
  /** Called with the number of records that were written together. */
  readonly onStored: (records: number) => void
}

/** Counts lost records, and logs a warning at most once a minute. */
export class AuditLosses {
  readonly #parts: { clock: Clock; log: Log }
  #unreported = 0
  #reportedAt = Number.NEGATIVE_INFINITY
  /** Number of lost records since the start. */
  total = 0

  constructor(parts: { clock: Clock; log: Log }) {
    this.#parts = parts
  }

  /** @param error  reason for the loss */
  add(records: number, error?: unknown): void {
    this.total += records
    this.#unreported += records
    if (this.#parts.clock.now() - this.#reportedAt >= warningIntervalMs) this.#warn(error)
  }

  /** Logs losses that were not logged yet. */
  close(): void {
    if (this.#unreported > 0) this.#warn()
  }

  #warn(error?: unknown): void {
    const { clock, log } = this.#parts
    this.#reportedAt = clock.now()
    log.warn({ lost: this.#unreported, lostSinceStart: this.total, error }, 'audit records were lost')
    this.#unreported = 0
  }
}

interface QueuedRecord {
  readonly row: AuditRow
  /** Content that identifies identical records; undefined if it was not computed. */
  readonly contentKey: string | undefined
  times: number
}

/**
 * Queue of records to store, written in groups while requests continue.
 *
 * A flood of records costs the store one write per group, and this process a bounded queue. If refusals are
 * identical, one record is stored with their number, so that there is room for others.
 */
export class AuditQueue {
  readonly #parts: AuditQueueParts
  readonly #waiting: QueuedRecord[] = []
  /** Waiting records whose content was computed, by content. */
  readonly #byContent = new Map<string, QueuedRecord>()
  /** The write in progress. */
  #group: Promise<void> | undefined
  #taken = 0
  #settled = 0

  constructor(parts: AuditQueueParts) {
    this.#parts = parts
  }

  /** Adds a record. Never throws or waits. */
  take(row: AuditRow): void {
    const key = this.#isCrowded ? contentKey(row) : undefined
    if (key !== undefined && this.#isCounted(key)) return
    if (this.#waiting.length >= queuedRecordsMax) {
      this.#parts.losses.add(1)
      return
    }
    const waiting = { row, contentKey: key, times: 1 }
    this.#waiting.push(waiting)
    if (key !== undefined) this.#byContent.set(key, waiting)
    this.#taken++
    this.#group ??= this.#write()
  }

  /** Resolves when all records taken so far are written or lost. */
  async flushed(): Promise<void> {
    const upTo = this.#taken
    while (this.#settled < upTo) await this.#group
  }

  get #isCrowded(): boolean {
    return this.#parts.mergesIdentical && this.#waiting.length >= crowdedLength
  }

  /** Counts a record at an identical one in the queue. Returns false if there is no such record. */
  #isCounted(key: string): boolean {
    const same = this.#byContent.get(key)
    if (!same || this.#parts.clock.now() - Date.parse(same.row.at) > mergeWindowMs) return false
    same.times++
    return true
  }

  async #write(): Promise<void> {
    // Records taken in this turn of the event loop join the group.
    await new Promise(setImmediate)
    const group = this.#waiting.splice(0, recordsPerGroupMax)
    for (const { contentKey: key } of group) if (key !== undefined) this.#byContent.delete(key)
    const records = group.reduce((sum, { times }) => sum + times, 0)
    try {
      const outcome = await this.#parts.rows.atomic(
        group.map((waiting): Write => ({ op: 'insert', table: tables.audit, row: withCount(waiting) })),
      )
      if (outcome.ok) this.#parts.onStored(group.length)
      else this.#parts.losses.add(records, outcome)
    } catch (error) {
      this.#parts.losses.add(records, error)
    }
    this.#settled += group.length
    this.#group = this.#waiting.length > 0 ? this.#write() : undefined
  }
}

function contentKey({ action, outcome, subject, workspaceId, details }: AuditRow): string {
  return JSON.stringify([action, outcome, subject, workspaceId, details])
}

function withCount({ row, times }: QueuedRecord): AuditRow {
  return times === 1 ? row : { ...row, details: { ...row.details, count: times } }
}
