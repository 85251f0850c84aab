import type { AuditTrail } from '../access/audit-trail.ts'
import { timestamp } from '../base/clock.ts'
import { isProcessRunning } from '../base/is-process-running.ts'
import type { Log } from '../base/log.ts'
import { presentableMessage } from '../base/redact.ts'
import { WbError } from '../contract/errors.ts'
import type { Job } from '../contract/jobs.ts'
import type { IngestLoad } from '../contract/operational.ts'
import type { Stored } from '../storage/rows.ts'
import { type JobRow, tables } from '../storage/tables.ts'
import { changedJob, failJob } from './job-changes.ts'
import { JobClaim, type JobClaimParts } from './job-claim.ts'

/** Number of candidates to read at once. If other processes claim all of them, more are read. */
const candidatesMax = 16
/** Maximum number of running jobs on one store. */
const runningMax = 10_000
/**
 * Maximum number of processes that may die while they work on a job. Without it, a text that kills each
 * process, for example by its memory use, would prevent every start of a server.
 */
const deathsMax = 10
/** Lease owners in this process. */
const localOwners = new Set<string>()

export interface JobWorkerParts extends Omit<JobClaimParts, 'owner'> {
  readonly log: Log
  readonly audit: Pick<AuditTrail, 'note'>
  /** Name of the machine. */
  readonly host: string
  /** Distinguishes this process from earlier ones with the same process id. */
  readonly processMark: string
  /** Maximum number of jobs at the same time. */
  readonly capacity: number
  /** Interval between checks for abandoned jobs, in milliseconds. */
  readonly checkIntervalMs: number
  /** Does the work and ends the job, or throws the reason of a failure. */
  readonly perform: (claim: JobClaim) => Promise<void>
}

interface RunningJob {
  readonly claim: JobClaim
  readonly done: Promise<void>
}

/** Runs jobs, a few at a time: first abandoned ones, then pending ones in order of creation. */
export class JobWorker {
  readonly #parts: JobWorkerParts
  readonly #owner: string
  readonly #running = new Map<string, RunningJob>()
  #claiming: Promise<void> | undefined
  #mustCheckAgain = false
  #isClosed = false
  #cancelTimer = () => {}

  constructor(parts: JobWorkerParts) {
    this.#parts = parts
    this.#owner = `${parts.host}:${process.pid}:${parts.processMark}`
    localOwners.add(this.#owner)
  }

  /** Runs jobs from now on, and checks for abandoned jobs at intervals. */
  start(): void {
    this.wake()
    this.#cancelTimer = this.#parts.clock.after(this.#parts.checkIntervalMs, () => this.start())
  }

  /** Checks for jobs to work on. */
  wake(): void {
    this.#claimWhilePossible().catch(error => this.#parts.log.error({ error }, 'looking for jobs failed'))
  }

  /** Returns the number of jobs that no process works on. */
  async due(): Promise<number> {
    const { rows } = this.#parts
    return (await this.#abandoned()).length + (await rows.count(tables.jobs, 'byStatus', ['pending']))
  }

  async load(): Promise<IngestLoad> {
    const queued = await this.#parts.rows.count(tables.jobs, 'byStatus', ['pending'])
    return { active: this.#running.size, capacity: this.#parts.capacity, queued }
  }

  /** Runs all jobs that are due, and waits for them. */
  async settle(signal: AbortSignal, onChange: (job: Job) => void): Promise<void> {
    const removeListener = this.#parts.jobEvents.listen(onChange)
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

  /** Stops the work on a job that was ended elsewhere. */
  cancelLocal(jobId: string): void {
    this.#running.get(jobId)?.claim.lose()
  }

  /** Claims no more jobs, and releases running ones for other processes. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#cancelTimer()
    await this.#claiming?.catch(() => {})
    for (const { claim } of this.#running.values()) claim.interrupt()
    await Promise.all([...this.#running.values()].map(({ done }) => done))
    localOwners.delete(this.#owner)
  }

  /** Claims jobs while there is capacity. A call in the meantime makes it check once more. */
  #claimWhilePossible(): Promise<void> {
    this.#mustCheckAgain = true
    this.#claiming ??= this.#claimJobs()
    return this.#claiming
  }

  async #claimJobs(): Promise<void> {
    // Otherwise it could finish before `#filling` is set.
    await Promise.resolve()
    try {
      while (this.#mustCheckAgain && !this.#isClosed) {
        this.#mustCheckAgain = false
        while (!this.#isClosed && this.#running.size < this.#parts.capacity) {
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
        if (claim) return claim
      }
    }
  }

  async #candidates(): Promise<Stored<JobRow>[]> {
    const abandoned = await this.#abandoned()
    if (abandoned.length > 0) return abandoned.slice(0, candidatesMax)
    const pending = { index: 'byStatus', prefix: ['pending'], limit: candidatesMax }
    return this.#parts.rows.list(tables.jobs, pending)
  }

  /** Returns jobs that were started, but that no process works on any more. */
  async #abandoned(): Promise<Stored<JobRow>[]> {
    const { rows, clock } = this.#parts
    const running = { index: 'byLease', prefix: ['running'], limit: runningMax }
    const now = timestamp(clock)
    return (await rows.list(tables.jobs, running)).filter(
      ({ row }) => !this.#running.has(row.jobId) && (isLeaseExpired(row, now) || this.#hasDeadOwner(row)),
    )
  }

  /**
   * Returns true if the job's process ran on this machine and has ended, so that its lease can be ignored.
   * After a restart of a container, it often had the same process id as this one.
   */
  #hasDeadOwner({ leaseOwner }: JobRow): boolean {
    if (!leaseOwner?.startsWith(`${this.#parts.host}:`)) return false
    const pid = Number(/:(\d+):[^:]*$/.exec(leaseOwner)?.[1])
    if (pid === process.pid) return !localOwners.has(leaseOwner)
    return pid > 0 && !isProcessRunning(pid)
  }

  async #claim(stored: Stored<JobRow>): Promise<JobClaim | undefined> {
    const { rows, clock, leaseMs, jobEvents, audit } = this.#parts
    const deaths = (stored.row.deaths ?? 0) + (this.#hasDeadOwner(stored.row) ? 1 : 0)
    if (deaths >= deathsMax) return this.#failAfterDeaths(stored)
    const leaseUntil = new Date(clock.now() + leaseMs).toISOString()
    const lease = { status: 'running', leaseOwner: this.#owner, leaseUntil, deaths } as const
    const row = changedJob(stored.row, lease, clock)
    const { version } = stored
    const outcome = await rows.atomic([{ op: 'replace', table: tables.jobs, row, version }])
    if (!outcome.ok) return undefined
    const { workspaceId, jobId, kind } = row
    audit.note(null, { action: 'job.claim', workspaceId, details: { jobId, jobKind: kind } })
    jobEvents.emit(row)
    return new JobClaim({ ...this.#parts, owner: this.#owner }, { ...stored, row, version: version + 1 })
  }

  async #failAfterDeaths(stored: Stored<JobRow>): Promise<undefined> {
    const { jobId } = stored.row
    this.#parts.log.error(
      { jobId, deaths: deathsMax },
      'a job is given up, as process after process died at it',
    )
    const ended = await failJob(
      this.#parts,
      stored,
      `the runtime ended ${deathsMax} times while it processed this text`,
    )
    if (ended) this.#parts.jobEvents.emit(ended)
  }

  #run(claim: JobClaim): void {
    const { jobId } = claim.job
    const done = this.#perform(claim)
      .catch(error => this.#parts.log.error({ jobId, error }, 'the end of a job could not be written'))
      .finally(() => {
        claim.close()
        this.#running.delete(jobId)
        if (!this.#isClosed) this.wake()
      })
    this.#running.set(jobId, { claim, done })
  }

  async #perform(claim: JobClaim): Promise<void> {
    try {
      await this.#parts.perform(claim)
    } catch (error) {
      if (claim.isLost) return
      if (claim.signal.aborted) return claim.release()
      await this.#endAsFailed(claim, error)
    }
  }

  /**
   * Ends a job as failed. If the store failed, leaves the lease to expire instead: the job runs again later,
   * when the store may have recovered.
   */
  async #endAsFailed(claim: JobClaim, error: unknown): Promise<void> {
    const { log } = this.#parts
    const { jobId } = claim.job
    const known = error instanceof WbError && error.code !== 'internal_error' ? error : undefined
    if (known?.code === 'control_plane_unavailable') {
      log.warn({ jobId, error }, 'a job is put off, as the store fails')
      return
    }
    if (known) log.info({ jobId, code: known.code }, 'a job failed')
    else log.error({ jobId, error }, 'a job failed')
    await claim.fail(presentableMessage(known?.message ?? 'the text could not be ingested'))
  }
}

function isLeaseExpired({ leaseUntil }: JobRow, now: string): boolean {
  return leaseUntil === null || leaseUntil <= now
}
