import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import { hourMs, RepeatedTask } from '../base/repeated-task.ts'
import type { ListQuery, RowStore, RowTable, Stored, Write } from '../storage/rows.ts'

/** Maximum number of rows to delete per transaction, so that other writers wait only a few milliseconds. */
const sliceSize = 200
/** Maximum length of the rows to delete per transaction, as JSON, except the last. It limits the memory for large rows. */
const sliceCharsMax = 1_000_000
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

/** A list of records, from the oldest, and the maximum number of records in it. */
export interface RecordLimit {
  readonly list: Pick<ListQuery, 'index' | 'prefix'>
  readonly max: number
}

/** Rules for the records of a table. Its index `byTime` sorts them by their timestamp. */
export interface RetentionRules<Row extends object> {
  readonly table: RowTable<Row>
  readonly retentionDays: number
  /** Limits, or a function that returns those of the current records. */
  readonly limits: readonly RecordLimit[] | (() => Promise<readonly RecordLimit[]>)
  /** Calls a listener when this process has stored records. Returns a function that removes the listener. */
  readonly onStored?: (listener: (records: number) => void) => () => void
  /** Returns more writes for the transaction that deletes the given records. */
  readonly onDelete?: (deleted: readonly Row[]) => Promise<readonly Write[]>
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
  readonly #hourly: RepeatedTask
  #newRecords = 0
  #removeListener: (() => void) | undefined

  constructor(deps: RetentionDependencies, rules: RetentionRules<Row>) {
    this.#deps = deps
    this.#rules = rules
    const logFailure = (error: unknown) => deps.log.warn({ error }, rules.failureWarning)
    this.#hourly = new RepeatedTask(deps.clock, hourMs, () => this.#prune().catch(logFailure))
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
    for (const { list, max } of typeof limits === 'function' ? await limits() : limits) {
      const excess = (await rows.count(table, list.index, list.prefix)) - max
      await deleteFirst(rows, table, list, { count: excess, isStopped, onDelete })
    }
  }
}

/**
 * Deletes the first rows of a list, in small transactions.
 *
 * @throws Error   a write of `onDelete` failed
 * @param options  `count` is the number of rows to delete, by default all. `bytes` is the size of the rows to delete in addition
 *   to `count`, if those are smaller. Stops early when `isStopped` returns true. `onDelete` returns more writes for the
 *   transaction that deletes the given rows
 */
export async function deleteFirst<Row extends object>(
  rows: RowStore,
  table: RowTable<Row>,
  list: Pick<ListQuery, 'index' | 'prefix' | 'after' | 'through'>,
  options: {
    readonly count?: number
    readonly bytes?: number
    readonly isStopped?: () => boolean
    readonly onDelete?: RetentionRules<Row>['onDelete']
  } = {},
): Promise<void> {
  const { count = Number.POSITIVE_INFINITY, bytes = 0, isStopped = () => false, onDelete } = options
  let rowsLeft = count
  let bytesLeft = bytes
  while ((rowsLeft > 0 || bytesLeft > 0) && !isStopped()) {
    const slice = await rows.list(table, { ...list, limit: sliceSize, charsMax: sliceCharsMax })
    if (slice.length === 0) return
    const first: Stored<Row>[] = []
    for (const stored of slice) {
      if (rowsLeft <= 0 && bytesLeft <= 0) break
      first.push(stored)
      rowsLeft--
      bytesLeft -= Buffer.byteLength(stored.text)
    }
    const deletions = first.map(
      ({ ordinal }): Write => ({ op: 'deleteAll', table, index: 'byOrdinal', prefix: [ordinal] }),
    )
    const more = (await onDelete?.(first.map(({ row }) => row))) ?? []
    const outcome = await rows.atomic([...deletions, ...more])
    if (!outcome.ok) throw new Error('another process changed the records at the same time')
  }
}
