import type { Clock } from '../base/clock.ts'
import { HourlyTask } from '../base/hourly-task.ts'
import type { Log } from '../base/log.ts'
import type { ListQuery, RowStore, RowTable, Write } from '../storage/rows.ts'

/** Maximum number of rows to delete per transaction, so that other writers wait only a few milliseconds. */
const sliceSize = 200
/**
 * Number of new records of this process that triggers an early check, so that a flood of records cannot fill the
 * disk.
 */
const recordsBetweenChecksMax = 10_000
const dayMs = 86_400_000

export interface RetentionDependencies {
  readonly rows: RowStore
  readonly clock: Clock
  readonly log: Log
}

/** Rules for the records of a table. Its index `byTime` sorts them by their timestamp. */
export interface RetentionRules<Row extends object> {
  readonly table: RowTable<Row>
  readonly retentionDays: number
  /** Lists of records, from the oldest, and the maximum number of records in each. */
  readonly limits: readonly { readonly list: Pick<ListQuery, 'index' | 'prefix'>; readonly max: number }[]
  /** Calls a listener when this process has stored records. Returns a function that removes the listener. */
  readonly onStored?: (listener: (records: number) => void) => () => void
  /** Returns more writes for the transaction that deletes records up to the given one. */
  readonly onDelete?: (last: Row) => Promise<readonly Write[]>
  /** Message of the log line if records could not be deleted. */
  readonly failureWarning: string
}

/**
 * Deletes records that are older than the retention time, and the oldest records above the maximum numbers. Must run in only
 * one of the processes that use a store.
 */
export class RecordRetention<Row extends object> {
  readonly #deps: RetentionDependencies
  readonly #rules: RetentionRules<Row>
  readonly #hourly: HourlyTask
  #newRecords = 0
  #removeListener: (() => void) | undefined

  constructor(deps: RetentionDependencies, rules: RetentionRules<Row>) {
    this.#deps = deps
    this.#rules = rules
    const logFailure = (error: unknown) => deps.log.warn({ error }, rules.failureWarning)
    this.#hourly = new HourlyTask(deps.clock, () => this.#prune().catch(logFailure))
  }

  /** Deletes old records now, every hour, and after many new records. */
  start(): void {
    this.#removeListener = this.#rules.onStored?.(records => {
      this.#newRecords += records
      if (this.#newRecords >= recordsBetweenChecksMax) this.#hourly.runNow()
    })
    this.#hourly.start()
  }

  close(): Promise<void> {
    this.#removeListener?.()
    return this.#hourly.close()
  }

  async #prune(): Promise<void> {
    this.#newRecords = 0
    const { rows, clock } = this.#deps
    const { table, retentionDays, limits, onDelete } = this.#rules
    const expiredUntil = new Date(clock.now() - retentionDays * dayMs).toISOString()
    const isStopped = () => this.#hourly.isClosed
    await deleteFirst(
      rows,
      table,
      { index: 'byTime', prefix: [], through: expiredUntil },
      { isStopped, onDelete },
    )
    for (const { list, max } of limits) {
      const excess = (await rows.count(table, list.index, list.prefix)) - max
      await deleteFirst(rows, table, list, { count: excess, isStopped, onDelete })
    }
  }
}

/**
 * Deletes the first rows of a list, in small transactions.
 *
 * @throws Error   a write of `onDelete` failed
 * @param options  `count` is the number of rows to delete, by default all. Stops early when `isStopped` returns true.
 *   `onDelete` returns more writes for the transaction that deletes rows up to the given one
 */
export async function deleteFirst<Row extends object>(
  rows: RowStore,
  table: RowTable<Row>,
  list: Pick<ListQuery, 'index' | 'prefix' | 'through'>,
  options: {
    readonly count?: number
    readonly isStopped?: () => boolean
    readonly onDelete?: RetentionRules<Row>['onDelete']
  } = {},
): Promise<void> {
  const { count = Number.POSITIVE_INFINITY, isStopped = () => false, onDelete } = options
  for (let remaining = count; remaining > 0 && !isStopped(); remaining -= sliceSize) {
    const slice = await rows.list(table, { ...list, limit: Math.min(sliceSize, remaining) })
    const last = slice.at(-1)
    if (!last) return
    const deletions = slice.map(
      ({ ordinal }): Write => ({ op: 'deleteAll', table, index: 'byOrdinal', prefix: [ordinal] }),
    )
    const outcome = await rows.atomic([...deletions, ...((await onDelete?.(last.row)) ?? [])])
    if (!outcome.ok) throw new Error('another process changed the records at the same time')
  }
}
