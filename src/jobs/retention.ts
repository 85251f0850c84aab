import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import { hourMs, RepeatedTask } from '../base/repeated-task.ts'
import type { RowStore, Write } from '../storage/rows.ts'
import { tables } from '../storage/tables.ts'

/** Maximum number of rows to delete per transaction. Deleting them blocks other writers for a few milliseconds. */
const rowsPerTransaction = 200
const dayMs = 86_400_000

export interface JobRetentionDependencies {
  readonly rows: RowStore
  readonly clock: Clock
  readonly log: Log
  readonly retentionDays: number
}

/** Deletes jobs that ended more than `retentionDays` ago. At most one process per store may run this task. */
export class JobRetention {
  readonly #deps: JobRetentionDependencies
  readonly #hourly: RepeatedTask

  constructor(deps: JobRetentionDependencies) {
    this.#deps = deps
    const logFailure = (error: unknown) => deps.log.warn({ error }, 'old jobs could not be deleted')
    this.#hourly = new RepeatedTask(deps.clock, hourMs, () => this.#prune().catch(logFailure))
  }

  /** Deletes old jobs now and every hour. */
  start(): void {
    this.#hourly.start()
  }

  close(): Promise<void> {
    return this.#hourly.close()
  }

  async #prune(): Promise<void> {
    const { rows, clock, retentionDays } = this.#deps
    const through = new Date(clock.now() - retentionDays * dayMs).toISOString()
    const old = { index: 'byEnd', prefix: [], through, limit: rowsPerTransaction }
    while (!this.#hourly.isClosed) {
      const slice = await rows.list(tables.jobs, old)
      if (slice.length === 0) return
      await rows.atomic(
        slice.map(
          ({ row }): Write => ({ op: 'delete', table: tables.jobs, key: [row.workspaceId, row.jobId] }),
        ),
      )
    }
  }
}
