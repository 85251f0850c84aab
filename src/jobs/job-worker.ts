import type { AuditTrail } from '../access/audit-trail.ts'
import { timestamp } from '../base/clock.ts'
import { isProcessRunning } from '../base/is-process-running.ts'
import type { Log } from '../base/log.ts'
import { WbError } from '../contract/errors.ts'
import type { Job } from '../contract/jobs.ts'
import type { IngestLoad } from '../contract/runtime-routes.ts'
import type { Stored } from '../storage/rows.ts'
import { type JobRow, tables } from '../storage/tables.ts'
import { describeFailure } from './ingest-report.ts'
import { changedJob, failJob } from './job-changes.ts'
import { JobClaim, type JobClaimDependencies } from './job-claim.ts'

/** Maximum number of jobs to read at once. If other processes claim all of them, more are read. */
const candidatesMax = 16
/** Maximum number of running jobs to read from a store. */
const runningMax = 10_000
/**
 * A job fails after this number of processes have crashed while working on it. Without a limit, a text that crashes the
 * process, for example because of its memory use, would crash the server after every start.
 */
const crashesMax = 10
/** Names of the lease owners in this process. */
const localOwners = new Set<string>()

export interface JobWorkerDependencies extends Omit<JobClaimDependencies, 'owner'> {
  readonly log: Log
  readonly audit: Pick<AuditTrail, 'note'>
  /** Host name of this machine. */
  readonly host: string
  /** Random string that distinguishes this process from earlier processes with the same process ID. */
  readonly processNonce: string
  /** Maximum number of jobs that run at the same time. */
  readonly capacity: number
  /** Interval between checks for abandoned jobs, in milliseconds. */
  readonly checkIntervalMs: number
  /** Runs a job and ends it as succeeded, or throws the reason for the failure. */
  readonly perform: (claim: JobClaim) => Promise<void>
}

/** Number of jobs more than the capacity. Their texts and their work have limits of their own, so a job that waits costs little. */
const extraPlaces = 8

interface RunningJob {
  readonly claim: JobClaim
  readonly done: Promise<void>
}

/**
 * Runs several jobs at a time: first abandoned jobs, then pending jobs. Workspaces with pending jobs take turns, and the jobs of a
 * workspace run in order of creation. Jobs can wait for minutes, for example for a provider, so more than the capacity can run
 * if their workspaces have no other running job.
 */
export class JobWorker {
  readonly #deps: JobWorkerDependencies
  readonly #owner: string
  readonly #running = new Map<string, RunningJob>()
  #claiming: Promise<void> | undefined
  /** Workspace whose pending job was claimed last. */
  #lastWorkspaceId = ''
  #mustCheckAgain = false
  #isClosed = false
  #cancelTimer = () => {}

  constructor(deps: JobWorkerDependencies) {
    this.#deps = deps
    this.#owner = `${deps.host}:${process.pid}:${deps.processNonce}`
    localOwners.add(this.#owner)
  }

  /** Starts running jobs, and checks for abandoned jobs at intervals. */
  start(): void {
    this.wake()
    this.#cancelTimer = this.#deps.clock.after(this.#deps.checkIntervalMs, () => this.start())
  }

  /** Checks for jobs to run. */
  wake(): void {
    this.#claimWhilePossible().catch(error => this.#deps.log.error({ error }, 'the check for jobs failed'))
  }

  /** Returns the number of unfinished jobs that no process is working on. */
  async countDue(): Promise<number> {
    const { rows } = this.#deps
    return (await this.#abandoned()).length + (await rows.count(tables.jobs, 'byStatus', ['pending']))
  }

  async load(): Promise<IngestLoad> {
    const queued = await this.#deps.rows.count(tables.jobs, 'byStatus', ['pending'])
    return { active: this.#running.size, capacity: this.#deps.capacity, queued }
  }

  /** Runs all jobs that are due, and waits for them. */
  async settle(signal: AbortSignal, onChange: (job: Job) => void): Promise<void> {
    const removeListener = this.#deps.jobEvents.listen(onChange)
    const stop = () => void this.close()
    signal.addEventListener('abort', stop)
    try {
      for (;;) {
        await this.#claimWhilePossible()
        if (this.#running.size === 0) return
        await Promise.race([...this.#running.values()].map(({ done }) => done))
      }
    } finally {
      removeListener()
      signal.removeEventListener('abort', stop)
    }
  }

  /** Stops the work on a job in this process, because a client cancelled it. */
  cancelLocal(jobId: string): void {
    this.#running.get(jobId)?.claim.markLost()
  }

  /** Stops claiming jobs, and releases the running jobs so that other processes can take them over. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#cancelTimer()
    await this.#claiming?.catch(() => {})
    for (const { claim } of this.#running.values()) claim.interrupt()
    await Promise.all([...this.#running.values()].map(({ done }) => done))
    localOwners.delete(this.#owner)
  }

  /** Claims jobs while there is capacity. A call during another call makes the other call check for jobs again. */
  #claimWhilePossible(): Promise<void> {
    this.#mustCheckAgain = true
    this.#claiming ??= this.#claimJobs()
    return this.#claiming
  }

  async #claimJobs(): Promise<void> {
    // Without this pause, the function could finish before `#claiming` is set.
    await Promise.resolve()
    try {
      while (this.#mustCheckAgain && !this.#isClosed) {
        this.#mustCheckAgain = false
        while (!this.#isClosed && this.#running.size < this.#deps.capacity + extraPlaces) {
          const claim = await this.#claimNext()
          if (!claim) break
          this.#run(claim)
        }
      }
    } finally {
      this.#claiming = undefined
    }
  }

  async #claimNext(): Promise<JobClaim | undefined> {
    for (;;) {
      const candidates = await this.#candidates()
      if (candidates.length === 0) return undefined
      for (const candidate of candidates) {
        const claim = await this.#claim(candidate)
        if (!claim) continue
        if (candidate.row.status === 'pending') this.#lastWorkspaceId = candidate.row.workspaceId
        return claim
      }
    }
  }

  async #candidates(): Promise<Stored<JobRow>[]> {
    const abandoned = (await this.#abandoned()).filter(job => this.#mayRun(job))
    if (abandoned.length > 0) return abandoned.slice(0, candidatesMax)
    const pending = { index: 'byTurn', prefix: ['pending'], limit: candidatesMax }
    let after: [workspaceId: string, ordinal: number] | undefined = afterJobsOf(this.#lastWorkspaceId)
    for (let hasWrapped = false; ; ) {
      const page: Stored<JobRow>[] = await this.#deps.rows.list(tables.jobs, {
        ...pending,
        ...(after && { after }),
      })
      const candidates = page.filter(job => this.#mayRun(job))
      if (candidates.length > 0) return candidates
      const last = page.at(-1)
      if (!last && hasWrapped) return []
      hasWrapped ||= !last
      after = last && afterJobsOf(last.row.workspaceId)
    }
  }

  /** Returns true if there is capacity for a job. The extra places are for workspaces that have no running job. */
  #mayRun({ row: { workspaceId } }: Stored<JobRow>): boolean {
    if (this.#running.size < this.#deps.capacity) return true
    return [...this.#running.values()].every(({ claim }) => claim.job.workspaceId !== workspaceId)
  }

  /** Returns jobs that were started, but that no process is working on. */
  async #abandoned(): Promise<Stored<JobRow>[]> {
    const { rows, clock } = this.#deps
    const running = { index: 'byLease', prefix: ['running'], limit: runningMax }
    const now = timestamp(clock)
    return (await rows.list(tables.jobs, running)).filter(
      ({ row }) => !this.#running.has(row.jobId) && (isLeaseExpired(row, now) || this.#hasEndedOwner(row)),
    )
  }

  /**
   * Returns true if the process that owns the lease ran on this machine and has ended. Its lease can be ignored.
   * After a container restart, the ended process often had the same process ID as the current one.
   */
  #hasEndedOwner({ leaseOwner }: JobRow): boolean {
    if (!leaseOwner?.startsWith(`${this.#deps.host}:`)) return false
    const pid = Number(/:(\d+):[^:]*$/.exec(leaseOwner)?.[1])
    if (pid === process.pid) return !localOwners.has(leaseOwner)
    return pid > 0 && !isProcessRunning(pid)
  }

  async #claim(stored: Stored<JobRow>): Promise<JobClaim | undefined> {
    const { rows, clock, leaseMs, jobEvents, audit } = this.#deps
    const crashes = (stored.row.deaths ?? 0) + (this.#hasEndedOwner(stored.row) ? 1 : 0)
    if (crashes >= crashesMax) return this.#failAfterCrashes(stored)
    const leaseUntil = new Date(clock.now() + leaseMs).toISOString()
    const lease = { status: 'running', leaseOwner: this.#owner, leaseUntil, deaths: crashes } as const
    const row = changedJob(stored.row, lease, clock)
    const { version } = stored
    const outcome = await rows.atomic([{ op: 'replace', table: tables.jobs, row, version }])
    if (!outcome.ok) return undefined
    const { workspaceId, jobId, kind } = row
    audit.note(null, { action: 'job.claim', workspaceId, details: { jobId, jobKind: kind } })
    jobEvents.emit(row)
    return new JobClaim({ ...this.#deps, owner: this.#owner }, { ...stored, row, version: version + 1 })
  }

  async #failAfterCrashes(stored: Stored<JobRow>): Promise<undefined> {
    const { jobId } = stored.row
    this.#deps.log.error(
      { jobId, crashes: crashesMax },
      'a job failed, because too many processes crashed while working on it',
    )
    const ended = await failJob(this.#deps, stored, {
      code: null,
      message: `the runtime crashed ${crashesMax} times while running this job`,
      hint: null,
    })
    if (ended) this.#deps.jobEvents.emit(ended)
  }

  #run(claim: JobClaim): void {
    const { jobId } = claim.job
    const done = this.#perform(claim)
      .catch(error => this.#deps.log.error({ jobId, error }, 'the end of a job could not be stored'))
      .finally(() => {
        claim.close()
        this.#running.delete(jobId)
        if (!this.#isClosed) this.wake()
      })
    this.#running.set(jobId, { claim, done })
  }

  async #perform(claim: JobClaim): Promise<void> {
    try {
      await this.#deps.perform(claim)
    } catch (error) {
      if (claim.isLost) return
      if (claim.signal.aborted) return claim.release()
      await this.#endAsFailed(claim, error)
    }
  }

  /**
   * Ends a job as failed. If the store is unavailable, does not change the job, which runs again after the lease
   * expires.
   */
  async #endAsFailed(claim: JobClaim, error: unknown): Promise<void> {
    const { log } = this.#deps
    const { jobId } = claim.job
    const known = error instanceof WbError && error.code !== 'internal_error' ? error : undefined
    if (known?.code === 'control_plane_unavailable') {
      log.warn({ jobId, error }, 'a job was interrupted, because the store is unavailable')
      return
    }
    if (known) log.info({ jobId, code: known.code }, 'a job failed')
    else log.error({ jobId, error }, 'a job failed')
    const reason = claim.job.kind === 'reindex' ? 'the knowledge base could not be reindexed' : undefined
    await claim.fail(describeFailure(error, reason))
  }
}

function isLeaseExpired({ leaseUntil }: JobRow, now: string): boolean {
  return leaseUntil === null || leaseUntil <= now
}

/** Returns the position after all jobs of a workspace. */
function afterJobsOf(workspaceId: string): [workspaceId: string, ordinal: number] {
  return [workspaceId, Number.MAX_SAFE_INTEGER]
}
