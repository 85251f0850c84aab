import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { AuditRecord } from '../contract/audit-record.ts'
import type { RowStore, Write } from '../storage/rows.ts'
import { tables } from '../storage/tables.ts'

/** Where records go. Taking one never fails and never waits. */
export interface AuditSink {
  take(record: AuditRecord): void
}

/** Records as lines of the log. @see contract: audit events */
export function logLines(log: Log): AuditSink {
  return {
    take({ auditId: _auditId, at: _at, ...said }) {
      log.info({ audit: true, ...said }, `audit ${said.action} ${said.outcome}`)
    },
  }
}

/** Records that wait for the store; what comes beyond is lost. */
const waitingMax = 1_000
/** Records of one unit: other units of the store do not wait long for it. */
const groupMax = 200
const warningEveryMs = 60_000

/**
 * Records on their way into the store, written in groups while requests go on.
 *
 * A flood of refusals costs the store a write per group, and this process a bounded queue.
 */
export class StoreQueue implements AuditSink {
  readonly #parts: { rows: RowStore; clock: Clock; log: Log; kept: (records: number) => void }
  readonly #waiting: AuditRecord[] = []
  /** The group that is being written. */
  #group: Promise<void> | undefined
  #taken = 0
  #settled = 0
  #unsaid = 0
  #saidAt = Number.NEGATIVE_INFINITY
  /** Records that came to nothing, since the start. */
  lost = 0

  /** @param parts.kept  told how many records were written together */
  constructor(parts: { rows: RowStore; clock: Clock; log: Log; kept: (records: number) => void }) {
    this.#parts = parts
  }

  take(record: AuditRecord): void {
    if (this.#waiting.length >= waitingMax) {
      this.#lose(1)
      return
    }
    this.#waiting.push(record)
    this.#taken++
    this.#group ??= this.#write()
  }

  /** Resolves when what was taken so far is written, or lost. */
  async flushed(): Promise<void> {
    const upTo = this.#taken
    while (this.#settled < upTo) await this.#group
  }

  /** Write what waits. */
  async close(): Promise<void> {
    await this.flushed()
    if (this.#unsaid > 0) this.#warn()
  }

  async #write(): Promise<void> {
    // What is said in this turn of the event loop joins the group.
    await new Promise(setImmediate)
    const group = this.#waiting.splice(0, groupMax)
    try {
      const outcome = await this.#parts.rows.atomic(
        group.map((row): Write => ({ op: 'insert', table: tables.audit, row })),
      )
      if (outcome.ok) this.#parts.kept(group.length)
      else this.#lose(group.length, outcome)
    } catch (error) {
      this.#lose(group.length, error)
    }
    this.#settled += group.length
    this.#group = this.#waiting.length > 0 ? this.#write() : undefined
  }

  #lose(records: number, error?: unknown): void {
    this.lost += records
    this.#unsaid += records
    if (this.#parts.clock.now() - this.#saidAt >= warningEveryMs) this.#warn(error)
  }

  #warn(error?: unknown): void {
    this.#saidAt = this.#parts.clock.now()
    this.#parts.log.warn({ lost: this.#unsaid, error }, 'audit records were lost')
    this.#unsaid = 0
  }
}
