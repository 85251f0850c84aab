import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { RowStore, Write } from '../storage/rows.ts'
import { type AuditRow, tables } from '../storage/tables.ts'

/** Maximum number of records that wait to be written. Further records are lost. */
const waitingMax = 1_000
/** Maximum number of records per transaction, so that other transactions do not wait long. */
const groupMax = 200
const warningEveryMs = 60_000
/** Queue length from which identical records are merged. */
const crowdedFrom = waitingMax / 2
const sameWithinMs = 10_000

export interface StoreQueueParts {
  readonly rows: Pick<RowStore, 'atomic'>
  readonly clock: Clock
  readonly losses: Losses
  /** True if identical records are merged into one with a count while the queue is crowded. */
  readonly countsSame: boolean
  /** Called with the number of records that were written together. */
  readonly kept: (records: number) => void
}

/** Counts lost records, and logs a warning at most once a minute. */
export class Losses {
  readonly #parts: { clock: Clock; log: Log }
  #unsaid = 0
  #saidAt = Number.NEGATIVE_INFINITY
  /** Number of lost records since the start. */
  total = 0

  constructor(parts: { clock: Clock; log: Log }) {
    this.#parts = parts
  }

  /** @param error  reason for the loss */
  add(records: number, error?: unknown): void {
    this.total += records
    this.#unsaid += records
    if (this.#parts.clock.now() - this.#saidAt >= warningEveryMs) this.#warn(error)
  }

  /** Logs losses that were not logged yet. */
  close(): void {
    if (this.#unsaid > 0) this.#warn()
  }

  #warn(error?: unknown): void {
    const { clock, log } = this.#parts
    this.#saidAt = clock.now()
    log.warn({ lost: this.#unsaid, lostSinceStart: this.total, error }, 'audit records were lost')
    this.#unsaid = 0
  }
}

interface Waiting {
  readonly row: AuditRow
  /** Content that identifies identical records; undefined if it was not computed. */
  readonly said: string | undefined
  times: number
}

/**
 * Queue of records to store, written in groups while requests continue.
 *
 * A flood of records costs the store one write per group, and this process a bounded queue. If refusals are
 * identical, one record is stored with their number, so that there is room for others.
 */
export class StoreQueue {
  readonly #parts: StoreQueueParts
  readonly #waiting: Waiting[] = []
  /** Waiting records whose content was computed, by content. */
  readonly #bySaid = new Map<string, Waiting>()
  /** The write in progress. */
  #group: Promise<void> | undefined
  #taken = 0
  #settled = 0

  constructor(parts: StoreQueueParts) {
    this.#parts = parts
  }

  /** Adds a record. Never throws or waits. */
  take(row: AuditRow): void {
    const said = this.#isCrowded ? saidBy(row) : undefined
    if (said !== undefined && this.#isCounted(said)) return
    if (this.#waiting.length >= waitingMax) {
      this.#parts.losses.add(1)
      return
    }
    const waiting = { row, said, times: 1 }
    this.#waiting.push(waiting)
    if (said !== undefined) this.#bySaid.set(said, waiting)
    this.#taken++
    this.#group ??= this.#write()
  }

  /** Resolves when all records taken so far are written or lost. */
  async flushed(): Promise<void> {
    const upTo = this.#taken
    while (this.#settled < upTo) await this.#group
  }

  get #isCrowded(): boolean {
    return this.#parts.countsSame && this.#waiting.length >= crowdedFrom
  }

  /** Counts a record at an identical one in the queue. Returns false if there is no such record. */
  #isCounted(said: string): boolean {
    const same = this.#bySaid.get(said)
    if (!same || this.#parts.clock.now() - Date.parse(same.row.at) > sameWithinMs) return false
    same.times++
    return true
  }

  async #write(): Promise<void> {
    // Records taken in this turn of the event loop join the group.
    await new Promise(setImmediate)
    const group = this.#waiting.splice(0, groupMax)
    for (const { said } of group) if (said !== undefined) this.#bySaid.delete(said)
    const records = group.reduce((sum, { times }) => sum + times, 0)
    try {
      const outcome = await this.#parts.rows.atomic(
        group.map((waiting): Write => ({ op: 'insert', table: tables.audit, row: counted(waiting) })),
      )
      if (outcome.ok) this.#parts.kept(group.length)
      else this.#parts.losses.add(records, outcome)
    } catch (error) {
      this.#parts.losses.add(records, error)
    }
    this.#settled += group.length
    this.#group = this.#waiting.length > 0 ? this.#write() : undefined
  }
}

function saidBy({ action, outcome, subject, workspaceId, details }: AuditRow): string {
  return JSON.stringify([action, outcome, subject, workspaceId, details])
}

function counted({ row, times }: Waiting): AuditRow {
  return times === 1 ? row : { ...row, details: { ...row.details, count: times } }
}
