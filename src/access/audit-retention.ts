import type { Clock } from '../base/clock.ts'
import { HourlyTask } from '../base/hourly-task.ts'
import type { Log } from '../base/log.ts'
import type { ListQuery, RowStore, Write } from '../storage/rows.ts'
import { tables } from '../storage/tables.ts'
import type { AuditTrail } from './audit-trail.ts'

/** Default maximum number of stored records that are not refusals, about 1 GB. */
const actionsMaxDefault = 1_000_000
/**
 * Default maximum number of stored refusals, about 100 MB. Anyone can cause refusals without a credential, so a
 * separate limit keeps them from displacing other records.
 */
const refusalsMaxDefault = 100_000
/** Maximum number of rows to delete per transaction, so that other writers wait only a few milliseconds. */
const sliceSize = 200
/**
 * Number of new records of this process that triggers an early check, so that a flood of records cannot fill the
 * disk.
 */
const recordsBetweenChecksMax = 10_000
const dayMs = 86_400_000

export interface AuditRetentionParts {
  readonly rows: RowStore
  readonly clock: Clock
  readonly log: Log
  readonly trail: AuditTrail
  readonly retentionDays: number
  readonly actionsMax?: number
  readonly refusalsMax?: number
}

/** Deletes the oldest audit records above the maximum age or number. Run it in only one process of a store. */
export class AuditRetention {
  readonly #parts: AuditRetentionParts
  readonly #hourly: HourlyTask
  #newRecords = 0
  #removeListener = () => {}

  constructor(parts: AuditRetentionParts) {
    this.#parts = parts
    const logFailure = (error: unknown) => parts.log.warn({ error }, 'old audit records could not be deleted')
    this.#hourly = new HourlyTask(parts.clock, () => this.#prune().catch(logFailure))
  }

  /** Deletes old records now, every hour, and after many new records. */
  start(): void {
    this.#removeListener = this.#parts.trail.onStored(records => {
      this.#newRecords += records
      if (this.#newRecords >= recordsBetweenChecksMax) this.#hourly.runNow()
    })
    this.#hourly.start()
  }

  close(): Promise<void> {
    this.#removeListener()
    return this.#hourly.close()
  }

  async #prune(): Promise<void> {
    this.#newRecords = 0
    const { clock, retentionDays } = this.#parts
    const { actionsMax = actionsMaxDefault, refusalsMax = refusalsMaxDefault } = this.#parts
    const oldest = new Date(clock.now() - retentionDays * dayMs).toISOString()
    await this.#delete({ index: 'byTime', prefix: [], through: oldest }, Number.POSITIVE_INFINITY)
    await this.#deleteExcess(null, actionsMax)
    await this.#deleteExcess(1, refusalsMax)
  }

  /** Deletes the oldest refusals, or the oldest other records, above the maximum. */
  async #deleteExcess(refusal: 1 | null, max: number): Promise<void> {
    const sort = { index: 'byRefusal', prefix: [refusal] }
    const stored = await this.#parts.rows.count(tables.audit, sort.index, sort.prefix)
    await this.#delete(sort, stored - max)
  }

  /** Deletes the first `count` records of a list, in small transactions. */
  async #delete(list: Pick<ListQuery, 'index' | 'prefix' | 'through'>, count: number): Promise<void> {
    const { rows } = this.#parts
    for (let left = count; left > 0 && !this.#hourly.isClosed; left -= sliceSize) {
      const slice = await rows.list(tables.audit, { ...list, limit: Math.min(sliceSize, left) })
      if (slice.length === 0) return
      await rows.atomic(
        slice.map(
          ({ ordinal }): Write => ({
            op: 'deleteAll',
            table: tables.audit,
            index: 'byOrdinal',
            prefix: [ordinal],
          }),
        ),
      )
    }
  }
}
