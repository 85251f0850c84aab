import type { Clock } from '../../base/clock.ts'
import { HourlyTask } from '../../base/hourly-task.ts'
import type { Log } from '../../base/log.ts'
import type { RowStore, Stored, Write } from '../../storage/rows.ts'
import { type AccessVersionRow, tables } from '../../storage/tables.ts'
import { versionsStartSetting } from './access-history.ts'

/** Default maximum number of versions of a store, about 100 MB. */
const versionsMaxDefault = 100_000
/** Maximum number of rows to delete per transaction, so that other writers wait only a few milliseconds. */
const sliceSize = 200
const dayMs = 86_400_000

export interface VersionRetentionDependencies {
  readonly rows: RowStore
  readonly clock: Clock
  readonly log: Log
  readonly retentionDays: number
  readonly versionsMax?: number
}

/**
 * Deletes access versions that are older than the retention time, and the oldest versions above the maximum number. Must
 * run in only one of the processes that use a store.
 */
export class VersionRetention {
  readonly #deps: VersionRetentionDependencies
  readonly #hourly: HourlyTask

  constructor(deps: VersionRetentionDependencies) {
    this.#deps = deps
    const logFailure = (error: unknown) =>
      deps.log.warn({ error }, 'old access versions could not be deleted')
    this.#hourly = new HourlyTask(deps.clock, () => this.#prune().catch(logFailure))
  }

  /** Deletes old versions now, and every hour. */
  start(): void {
    this.#hourly.start()
  }

  close(): Promise<void> {
    return this.#hourly.close()
  }

  async #prune(): Promise<void> {
    const { rows, clock, retentionDays, versionsMax = versionsMaxDefault } = this.#deps
    const expiredUntil = new Date(clock.now() - retentionDays * dayMs).toISOString()
    await this.#delete(Number.POSITIVE_INFINITY, expiredUntil)
    await this.#delete((await rows.count(tables.accessVersions, 'byTime', [])) - versionsMax)
  }

  /** Deletes the first `count` versions, in small transactions. */
  async #delete(count: number, through?: string): Promise<void> {
    const { rows } = this.#deps
    for (let remaining = count; remaining > 0 && !this.#hourly.isClosed; remaining -= sliceSize) {
      const limit = Math.min(sliceSize, remaining)
      const slice = await rows.list(tables.accessVersions, { index: 'byTime', prefix: [], through, limit })
      const last = slice.at(-1)
      if (!last) return
      await rows.atomic([...slice.map(deletion), await this.#startWrite(last.row.until)])
    }
  }

  /** Returns the write that stores the time since which the remaining versions are complete. */
  async #startWrite(value: string): Promise<Write> {
    const stored = await this.#deps.rows.get(tables.settings, [versionsStartSetting])
    const row = { name: versionsStartSetting, value }
    return { op: stored ? 'replace' : 'insert', table: tables.settings, row }
  }
}

function deletion({ row: { workspaceId, versionId } }: Stored<AccessVersionRow>): Write {
  return { op: 'delete', table: tables.accessVersions, key: [workspaceId, versionId] }
}
