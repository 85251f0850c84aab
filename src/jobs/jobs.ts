import type { Caller } from '../access/caller.ts'
import { isDocumentVisible } from '../access/document-visibility.ts'
import type { RowAccess } from '../access/row-access.ts'
import type { Clock } from '../base/clock.ts'
import { WbError } from '../contract/errors.ts'
import { isoTimestamp } from '../contract/fields.ts'
import type { Job } from '../contract/jobs.ts'
import type { PageQuery } from '../contract/page.ts'
import type { ServerEvent } from '../contract/route.ts'
import type { Pager, RowPage } from '../storage/cursor.ts'
import type { RowReader, RowStore, Stored } from '../storage/rows.ts'
import { type JobRow, tables } from '../storage/tables.ts'
import { failJob } from './job-changes.ts'
import type { JobEvents } from './job-events.ts'
import { JobFollower } from './job-follower.ts'
import { RowSnapshots } from './row-snapshots.ts'

/** Interval in milliseconds at which the changes of other processes are read. */
const pollMs = 500
/** Maximum age in milliseconds of rows that the event streams of a job share. */
const sharedRowsMaxAgeMs = pollMs / 2
/**
 * Maximum number of attempts. A cancellation is retried if the job changed in the meantime. Running jobs change often.
 */
const attemptsMax = 100

interface JobKey {
  readonly workspaceId: string
  readonly jobId: string
}

type JobCaller = Pick<Caller, 'rowAccess'>

interface JobsDependencies {
  readonly rows: RowStore
  readonly pager: Pager
  readonly clock: Clock
  readonly jobEvents: JobEvents
  /** Called when a client follows a job. */
  readonly onFollow: () => void
  /** Called after a client has cancelled a job. */
  readonly onCancel: (jobId: string) => void
}

/** Lists, reads, cancels and follows the jobs of workspaces. */
export class Jobs {
  private readonly snapshots: RowSnapshots

  constructor(private readonly deps: JobsDependencies) {
    this.snapshots = new RowSnapshots({ ...deps, maxAgeMs: sharedRowsMaxAgeMs })
    // Followers listen later, so they read a new snapshot when they wake.
    deps.jobEvents.listen(({ jobId }) => this.snapshots.delete(jobId))
  }

  /**
   * Lists the jobs that the caller may see, newest first.
   *
   * @throws workspace_not_found, invalid_cursor, policy_principal_required
   */
  async list(workspaceId: string, query: PageQuery, caller: JobCaller): Promise<RowPage<Job>> {
    const { rows, pager } = this.deps
    const access = await caller.rowAccess(workspaceId)
    access.requirePrincipal()
    const all = { index: 'byWorkspace', prefix: [workspaceId], descending: true }
    if (!access.isEnabled) return pager.page(tables.jobs, all, query)
    const newestFirst = { ...all, tags: await this.tagsOfVisible(workspaceId, access) }
    const search = {
      select: async ({ row: job }: Stored<JobRow>) =>
        (await isDocumentVisible(rows, job, access, 'list')) ? job : undefined,
      isExhausted: false,
    }
    const page = await pager.searchPage(tables.jobs, newestFirst, query, search)
    if (page.nextCursor === null) return page
    // A cursor must not reveal that hidden jobs follow.
    const rest = { limit: 1, cursor: page.nextCursor }
    const { items } = await pager.searchPage(tables.jobs, newestFirst, rest, search)
    return items.length > 0 ? page : { ...page, nextCursor: null }
  }

  /** Returns tags of which each job that the caller may see has at least one. */
  private async tagsOfVisible(workspaceId: string, access: RowAccess): Promise<string[]> {
    const { pager } = this.deps
    const list = { index: 'byWorkspace', prefix: [workspaceId] }
    const tags: string[] = []
    for await (const slice of pager.slices(tables.knowledgeBases, list))
      for (const { row } of slice) tags.push(...(access.documentTags(row) ?? [row.knowledgeBaseId]))
    return tags
  }

  /** @throws workspace_not_found, job_not_found, policy_principal_required */
  async get(jobKey: JobKey, caller: JobCaller): Promise<Job> {
    return (await this.stored(jobKey, caller)).row
  }

  /**
   * Cancels a job, which ends it as failed. A job that has already ended does not change.
   *
   * @throws workspace_not_found, job_not_found, policy_principal_required
   */
  async cancel(jobKey: JobKey, caller: JobCaller): Promise<Job> {
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      const stored = await this.stored(jobKey, caller)
      if (stored.row.endedAt !== null) return stored.row
      const ended = await failJob(this.deps, stored, { code: null, message: 'cancelled', hint: null })
      if (!ended) continue
      this.deps.onCancel(jobKey.jobId)
      this.deps.jobEvents.emit(ended)
      return ended
    }
    throw new WbError('control_plane_unavailable', 'the job keeps changing; it was not cancelled')
  }

  /**
   * Returns the events of a job, regardless of which process is working on it. They end when the caller may no longer see
   * the job.
   *
   * @param after  ID of the last event that the client received; ignored if it is not a timestamp
   * @throws workspace_not_found, job_not_found, policy_principal_required
   */
  async follow(jobKey: JobKey, after: string | null, caller: JobCaller): Promise<AsyncIterable<ServerEvent>> {
    const { workspaceId, jobId } = jobKey
    const { snapshots } = this
    // A new stream must not start with an earlier visibility.
    await this.stored(jobKey, caller, snapshots.create(jobId))
    const { clock, jobEvents, onFollow } = this.deps
    onFollow()
    return new JobFollower({
      after: isoTimestamp.safeParse(after).success ? after : null,
      async read() {
        const rows = snapshots.current(jobId)
        const job = (await rows.get(tables.jobs, [workspaceId, jobId]))?.row
        const access = await caller.rowAccess(workspaceId)
        const isVisible = job && (await isDocumentVisible(rows, job, access, 'get'))
        return isVisible ? job : undefined
      },
      wait(wake) {
        const cancels = [
          jobEvents.listen(job => {
            if (job.jobId === jobId) wake()
          }),
          clock.after(pollMs, wake),
        ]
        return () => {
          for (const cancel of cancels) cancel()
        }
      },
    })
  }

  private async stored(
    { workspaceId, jobId }: JobKey,
    caller: JobCaller,
    rows: RowReader = this.deps.rows,
  ): Promise<Stored<JobRow>> {
    const access = await caller.rowAccess(workspaceId)
    access.requirePrincipal()
    const stored = await rows.get(tables.jobs, [workspaceId, jobId])
    if (stored && (await isDocumentVisible(rows, stored.row, access, 'get'))) return stored
    throw new WbError('job_not_found', `job '${jobId}' not found`)
  }
}
