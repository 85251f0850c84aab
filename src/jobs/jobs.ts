import { requireWorkspace } from '../access/require-workspace.ts'
import type { Clock } from '../base/clock.ts'
import { WbError } from '../contract/errors.ts'
import { isoTimestamp } from '../contract/fields.ts'
import type { Job } from '../contract/jobs.ts'
import type { PageQuery } from '../contract/page.ts'
import type { ServerEvent } from '../contract/route.ts'
import type { Pager, RowPage } from '../storage/cursor.ts'
import type { RowStore, Stored } from '../storage/rows.ts'
import { type JobRow, tables } from '../storage/tables.ts'
import { failJob } from './job-changes.ts'
import type { JobEvents } from './job-events.ts'
import { JobFollower } from './job-follower.ts'

/** Interval in milliseconds at which the changes of other processes are read. */
const pollMs = 500
/**
 * Maximum number of attempts. A cancellation is retried if the job changed in the meantime. Running jobs change often.
 */
const attemptsMax = 100

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
  constructor(private readonly deps: JobsDependencies) {}

  /**
   * Lists jobs, newest first.
   *
   * @throws workspace_not_found, invalid_cursor
   */
  async list(workspaceId: string, query: PageQuery): Promise<RowPage<Job>> {
    await requireWorkspace(this.deps.rows, workspaceId)
    const newestFirst = { index: 'byWorkspace', prefix: [workspaceId], descending: true }
    return this.deps.pager.page(tables.jobs, newestFirst, query)
  }

  /** @throws workspace_not_found, job_not_found */
  async get(workspaceId: string, jobId: string): Promise<Job> {
    return (await this.stored(workspaceId, jobId)).row
  }

  /**
   * Cancels a job, which ends it as failed. A job that has already ended does not change.
   *
   * @throws workspace_not_found, job_not_found
   */
  async cancel(workspaceId: string, jobId: string): Promise<Job> {
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      const stored = await this.stored(workspaceId, jobId)
      if (stored.row.endedAt !== null) return stored.row
      const ended = await failJob(this.deps, stored, 'cancelled')
      if (!ended) continue
      this.deps.onCancel(jobId)
      this.deps.jobEvents.emit(ended)
      return ended
    }
    throw new WbError('control_plane_unavailable', 'the job keeps changing; it was not cancelled')
  }

  /**
   * Returns the events of a job, regardless of which process is working on it.
   *
   * @param after  ID of the last event that the client received; ignored if it is not a timestamp
   * @throws workspace_not_found, job_not_found
   */
  async follow(
    workspaceId: string,
    jobId: string,
    after: string | null,
  ): Promise<AsyncIterable<ServerEvent>> {
    await this.stored(workspaceId, jobId)
    const { rows, clock, jobEvents, onFollow } = this.deps
    onFollow()
    return new JobFollower({
      after: isoTimestamp.safeParse(after).success ? after : null,
      read: async () => (await rows.get(tables.jobs, [workspaceId, jobId]))?.row,
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

  private async stored(workspaceId: string, jobId: string): Promise<Stored<JobRow>> {
    const stored = await this.deps.rows.get(tables.jobs, [workspaceId, jobId])
    if (stored) return stored
    await requireWorkspace(this.deps.rows, workspaceId)
    throw new WbError('job_not_found', `job '${jobId}' not found`)
  }
}
