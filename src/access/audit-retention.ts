import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { ListQuery, RowStore, Write } from '../storage/rows.ts'
import { tables } from '../storage/tables.ts'
import type { AuditTrail } from './audit.ts'

/** Records kept at most, whatever their age: about 1 GB. */
const actsMaxDefault = 1_000_000
/** Of those that it took no credential to cause, so that nobody drives out the others with them: about 100 MB. */
const refusalsMaxDefault = 100_000
/** Rows deleted by one unit: other writers wait for a few milliseconds. */
const sliceSize = 200
const everyMs = 3_600_000
/** After so many records of this process the limits are looked at early, so that a flood cannot fill the disk. */
const recordsBetweenMax = 10_000
const dayMs = 86_400_000

export interface AuditRetentionParts {
  readonly rows: RowStore
  readonly clock: Clock
  readonly log: Log
  readonly trail: AuditTrail
  readonly retentionDays: number
  readonly actsMax?: number
  readonly refusalsMax?: number
}

/** Keeps the audit trail within its age and its number of records; the oldest go first. One process of a store does it. */
export class AuditRetention {
  readonly #parts: AuditRetentionParts
  #running: Promise<void> | undefined
  #isOver = false
  #since = 0
  #unlisten = () => {}
  #callOff = () => {}

  constructor(parts: AuditRetentionParts) {
    this.#parts = parts
  }

  /** Prune now, every hour, and when many records came. */
  start(): void {
    this.#unlisten = this.#parts.trail.onKept(records => {
      this.#since += records
      if (this.#since >= recordsBetweenMax) this.#prune()
    })
    this.#everyHour()
  }

  async close(): Promise<void> {
    this.#isOver = true
    this.#unlisten()
    this.#callOff()
    await this.#running
  }

  #everyHour(): void {
    this.#prune()
    this.#callOff = this.#parts.clock.after(everyMs, () => this.#everyHour())
  }

  #prune(): void {
    if (this.#running) return
    this.#since = 0
    this.#running = this.#pruneAll()
      .catch(error => this.#parts.log.warn({ error }, 'old audit records could not be deleted'))
      .finally(() => {
        this.#running = undefined
      })
  }

  async #pruneAll(): Promise<void> {
    const { clock, retentionDays } = this.#parts
    const { actsMax = actsMaxDefault, refusalsMax = refusalsMaxDefault } = this.#parts
    const oldest = new Date(clock.now() - retentionDays * dayMs).toISOString()
    await this.#delete({ index: 'byTime', prefix: [], through: oldest }, Number.POSITIVE_INFINITY)
    await this.#cutBack(null, actsMax)
    await this.#cutBack(1, refusalsMax)
  }

  /** Delete the oldest records of one sort that are too many. */
  async #cutBack(refusal: 1 | null, max: number): Promise<void> {
    const sort = { index: 'byRefusal', prefix: [refusal] }
    const kept = await this.#parts.rows.count(tables.audit, sort.index, sort.prefix)
    await this.#delete(sort, kept - max)
  }

  /** Delete records in the order of a list, in small units. */
  async #delete(list: Pick<ListQuery, 'index' | 'prefix' | 'through'>, count: number): Promise<void> {
    const { rows } = this.#parts
    for (let left = count; left > 0 && !this.#isOver; left -= sliceSize) {
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
