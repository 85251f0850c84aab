import { RepeatedTask } from '../../base/repeated-task.ts'
import type { RowsSize, Write } from '../../storage/rows.ts'
import { type AccessVersionRow, tables } from '../../storage/tables.ts'
import { deleteFirst, RecordRetention, type RetentionDependencies } from '../record-retention.ts'
import { versionsStartSetting } from './access-history.ts'

/** Default limits of the versions of a workspace. */
const limitsDefault: RowsSize = { rows: 100_000, bytes: 100_000_000 }
/** Interval of the checks for new versions. */
const intervalMs = 10_000
/** Maximum number and length of the versions to read at once. */
const slice = { limit: 200, charsMax: 1_000_000 }
const failureWarning = 'old access versions could not be deleted'

export interface VersionRetentionDependencies extends RetentionDependencies {
  readonly retentionDays: number
  /** Maximum number and size of the versions of each workspace. */
  readonly limits?: RowsSize
}

/**
 * Deletes access versions that are older than the retention time, and the oldest versions of a workspace that has too many. Stores the
 * time since which the remaining versions are complete. Must run in only one of the processes that use a store.
 */
export class VersionRetention {
  readonly #deps: VersionRetentionDependencies
  readonly #expiry: RecordRetention<AccessVersionRow>
  readonly #checks: RepeatedTask
  readonly #logFailure: (error: unknown) => void
  /** Ordinal of the last version that was checked; undefined before the first check. */
  #lastOrdinal: number | undefined
  /** Sizes by workspace, without the effect of deletions since they were measured. */
  readonly #sizes = new Map<string, RowsSize>()

  constructor(deps: VersionRetentionDependencies) {
    this.#deps = deps
    this.#expiry = new RecordRetention(deps, {
      table: tables.accessVersions,
      retentionDays: deps.retentionDays,
      limits: [],
      onDelete: async deleted => [await this.#startWrite(versionsStartSetting(), deleted)],
      failureWarning,
    })
    this.#logFailure = error => deps.log.warn({ error }, failureWarning)
    this.#checks = new RepeatedTask(deps.clock, intervalMs, () => this.#check().catch(this.#logFailure))
  }

  start(): void {
    this.#expiry.start()
    this.#checks.start()
  }

  async close(): Promise<void> {
    await this.#expiry.close()
    await this.#checks.close()
  }

  /** Checks the workspaces with new versions; all workspaces at the first call. */
  async #check(): Promise<void> {
    const workspaceIds =
      this.#lastOrdinal === undefined ? await this.#measureAll() : await this.#measureNew(this.#lastOrdinal)
    for (const workspaceId of workspaceIds)
      if (this.#exceedsLimits(this.#sizes.get(workspaceId)!))
        await this.#prune(workspaceId).catch(this.#logFailure)
  }

  async #measureAll(): Promise<Iterable<string>> {
    const { rows } = this.#deps
    const [last] = await rows.list(tables.accessVersions, {
      index: 'byOrdinal',
      prefix: [],
      descending: true,
      limit: 1,
    })
    const workspaceIds: string[] = []
    for (;;) {
      const previous = workspaceIds.at(-1)
      const [next] = await rows.list(tables.accessVersions, {
        index: 'byWorkspace',
        prefix: [],
        after: previous === undefined ? undefined : [previous, Number.MAX_SAFE_INTEGER],
        limit: 1,
      })
      if (!next || this.#checks.isClosed) break
      workspaceIds.push(next.row.workspaceId)
      await this.#measure(next.row.workspaceId)
    }
    this.#lastOrdinal = last?.ordinal ?? 0
    return workspaceIds
  }

  async #measureNew(lastOrdinal: number): Promise<Iterable<string>> {
    const workspaceIds = new Set<string>()
    for (let after = lastOrdinal; !this.#checks.isClosed; this.#lastOrdinal = after) {
      const versions = await this.#deps.rows.list(tables.accessVersions, {
        index: 'byOrdinal',
        prefix: [],
        after: [after],
        ...slice,
      })
      if (versions.length === 0) break
      for (const { row, text, ordinal } of versions) {
        after = ordinal
        workspaceIds.add(row.workspaceId)
        const size = this.#sizes.get(row.workspaceId)
        if (size)
          this.#sizes.set(row.workspaceId, {
            rows: size.rows + 1,
            bytes: size.bytes + Buffer.byteLength(text),
          })
        else await this.#measure(row.workspaceId)
      }
    }
    return workspaceIds
  }

  async #measure(workspaceId: string): Promise<RowsSize> {
    const size = await this.#deps.rows.measure(tables.accessVersions, 'byWorkspace', [workspaceId])
    this.#sizes.set(workspaceId, size)
    return size
  }

  #exceedsLimits({ rows, bytes }: RowsSize): boolean {
    const { limits = limitsDefault } = this.#deps
    return rows > limits.rows || bytes > limits.bytes
  }

  async #prune(workspaceId: string): Promise<void> {
    const { rows, limits = limitsDefault } = this.#deps
    const size = await this.#measure(workspaceId)
    const list = { index: 'byWorkspace', prefix: [workspaceId] }
    const setting = versionsStartSetting(workspaceId)
    await deleteFirst(rows, tables.accessVersions, list, {
      count: size.rows - limits.rows,
      bytes: size.bytes - limits.bytes,
      isStopped: () => this.#checks.isClosed,
      onDelete: async deleted => [
        { op: 'require', table: tables.workspaces, key: [workspaceId] },
        await this.#startWrite(setting, deleted),
      ],
    })
    await this.#measure(workspaceId)
  }

  /** Returns the write that stores the time since which versions are complete, after some are deleted. */
  async #startWrite(name: string, deleted: readonly AccessVersionRow[]): Promise<Write> {
    const stored = await this.#deps.rows.get(tables.settings, [name])
    const times = [...deleted.map(({ until }) => until), ...(stored ? [stored.row.value] : [])]
    const row = { name, value: times.sort().at(-1)! }
    return { op: stored ? 'replace' : 'insert', table: tables.settings, row }
  }
}
