import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { RowStore, Write } from '../storage/rows.ts'
import { type AuditRow, tables } from '../storage/tables.ts'

/** Records that wait for the store; what comes beyond is lost. */
const waitingMax = 1_000
/** Records of one unit: other units of the store do not wait long for it. */
const groupMax = 200
const warningEveryMs = 60_000
/** Where a queue is that full, a record that says the same as one that waits is counted there. */
const crowdedFrom = waitingMax / 2
const sameWithinMs = 10_000

export interface StoreQueueParts {
  readonly rows: Pick<RowStore, 'atomic'>
  readonly clock: Clock
  readonly losses: Losses
  /** Where it is crowded, records that say the same become one with their number. */
  readonly countsSame: boolean
  /** Told how many records were written together. */
  readonly kept: (records: number) => void
}

/** Records that came to nothing, said once a minute. */
export class Losses {
  readonly #parts: { clock: Clock; log: Log }
  #unsaid = 0
  #saidAt = Number.NEGATIVE_INFINITY
  /** Since the start. */
  total = 0

  constructor(parts: { clock: Clock; log: Log }) {
    this.#parts = parts
  }

  /** @param error  why */
  add(records: number, error?: unknown): void {
    this.total += records
    this.#unsaid += records
    if (this.#parts.clock.now() - this.#saidAt >= warningEveryMs) this.#warn(error)
  }

  /** Say what was not said yet. */
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
  /** What it says; undefined where nobody asked. */
  readonly said: string | undefined
  times: number
}

/**
 * Records on their way into the store, written in groups while requests go on.
 *
 * A flood costs the store a write per group, and this process a bounded queue. Of a flood of refusals that say the same
 * one record is kept, with their number, so that there is room for others.
 */
export class StoreQueue {
  readonly #parts: StoreQueueParts
  readonly #waiting: Waiting[] = []
  /** Those that wait and were told by what they say. */
  readonly #bySaid = new Map<string, Waiting>()
  /** The group that is being written. */
  #group: Promise<void> | undefined
  #taken = 0
  #settled = 0

  constructor(parts: StoreQueueParts) {
    this.#parts = parts
  }

  /** Never fails and never waits. */
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

  /** Resolves when what was taken so far is written, or lost. */
  async flushed(): Promise<void> {
    const upTo = this.#taken
    while (this.#settled < upTo) await this.#group
  }

  get #isCrowded(): boolean {
    return this.#parts.countsSame && this.#waiting.length >= crowdedFrom
  }

  /** Count a record at one that waits and says the same, if there is one. */
  #isCounted(said: string): boolean {
    const same = this.#bySaid.get(said)
    if (!same || this.#parts.clock.now() - Date.parse(same.row.at) > sameWithinMs) return false
    same.times++
    return true
  }

  async #write(): Promise<void> {
    // What is said in this turn of the event loop joins the group.
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
