import type { Clock } from '../base/clock.ts'
import { HourlyTask } from '../base/hourly-task.ts'
import type { Log } from '../base/log.ts'
import type { ListQuery, RowStore, Write } from '../storage/rows.ts'
import { tables } from '../storage/tables.ts'
import type { AuditTrail } from './audit-trail.ts'

/** Default maximum number of stored records other than refusals, about 1 GB. */
const actionsMaxDefault = 1_000_000
/**
 * Default maximum number of stored refusals (records of denied requests and of anonymous sign-in events), about 100 MB.
 * Anyone can cause refusals without a credential, so they have a separate limit and cannot displace other records.
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

export interface AuditRetentionDependencies {
  readonly rows: RowStore
  readonly clock: Clock
  readonly log: Log
  readonly trail: AuditTrail
  readonly retentionDays: number
  readonly actionsMax?: number
  readonly refusalsMax?: number
}

/**
 * Deletes audit records that are older than the retention time, and the oldest records above the maximum number. Must
 * run in only one of the processes that use a store.
 */
export class AuditRetention {
  readonly #deps: AuditRetentionDependencies
  readonly #hourly: HourlyTask
  #newRecords = 0
  #removeListener = () => {}

  constructor(deps: AuditRetentionDependencies) {
    this.#deps = deps
    const logFailure = (error: unknown) => deps.log.warn({ error }, 'old audit records could not be deleted')
    this.#hourly = new HourlyTask(deps.clock, () => this.#prune().catch(logFailure))
  }

  /** Deletes old records now, every hour, and after many new records. */
  start(): void {
    this.#removeListener = this.#deps.trail.onStored(records => {
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
    const { clock, retentionDays } = this.#deps
    const { actionsMax = actionsMaxDefault, refusalsMax = refusalsMaxDefault } = this.#deps
    const expiredUntil = new Date(clock.now() - retentionDays * dayMs).toISOString()
    await this.#delete({ index: 'byTime', prefix: [], through: expiredUntil }, Number.POSITIVE_INFINITY)
    await this.#deleteExcess(null, actionsMax)
    await this.#deleteExcess(1, refusalsMax)
  }

  /** Deletes the oldest refusals above a maximum number or, if `refusal` is null, the oldest other records. */
  async #deleteExcess(refusal: 1 | null, max: number): Promise<void> {
    const list = { index: 'byRefusal', prefix: [refusal] }
    const storedCount = await this.#deps.rows.count(tables.audit, list.index, list.prefix)
    await this.#delete(list, storedCount - max)
  }

  /** Deletes the first `count` records of a list, in small transactions. */
  async #delete(list: Pick<ListQuery, 'index' | 'prefix' | 'through'>, count: number): Promise<void> {
    const { rows } = this.#deps
    for (let remaining = count; remaining > 0 && !this.#hourly.isClosed; remaining -= sliceSize) {
      const slice = await rows.list(tables.audit, { ...list, limit: Math.min(sliceSize, remaining) })
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
