import { type Clock, timestamp } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { Job } from '../contract/jobs.ts'
import type { RowStore, Stored, Write, WriteOutcome } from '../storage/rows.ts'
import { type JobRow, tables } from '../storage/tables.ts'
import type { IngestFailure } from './ingest-report.ts'
import { changedJob, endedJob, endingWrites, failJob } from './job-changes.ts'
import type { JobEvents } from './job-events.ts'

/** Number of renewals during the lifetime of a lease. */
const renewalsPerLease = 3

export interface JobClaimDependencies {
  readonly rows: RowStore
  readonly clock: Clock
  readonly log: Log
  readonly jobEvents: JobEvents
  readonly owner: string
  readonly leaseMs: number
}

/** Error for a job that was cancelled, or that another process took over. Writes for the job would fail. */
export class ClaimLost extends Error {
  override readonly name = 'ClaimLost'
}

/** Applies row writes in one transaction, possibly with content writes. */
type ApplyWrites = (rows: readonly Write[]) => Promise<WriteOutcome>

/**
 * A job that this process is working on.
 *
 * Every change increases the version of the job. So if several processes assume that they own the job, only one of them
 * can write to it. Writes run one after another, because each requires the version that the previous one created.
 */
export class JobClaim {
  readonly #deps: JobClaimDependencies
  readonly #abortController = new AbortController()
  #stored: Stored<JobRow>
  #lastWrite: Promise<unknown> = Promise.resolve()
  #isLost = false
  #cancelRenewal = () => {}

  /** @param claimed  the job, which must already have a lease of this process */
  constructor(deps: JobClaimDependencies, claimed: Stored<JobRow>) {
    this.#deps = deps
    this.#stored = claimed
    this.#scheduleRenewal()
  }

  get job(): JobRow {
    return this.#stored.row
  }

  /** Fires when the work must stop, because the job was lost or the worker is closing. */
  get signal(): AbortSignal {
    return this.#abortController.signal
  }

  get isLost(): boolean {
    return this.#isLost
  }

  /**
   * Stores the progress of the job, in one transaction with other writes.
   *
   * @returns the outcome; `at` of a failure is an index in `rows`
   * @throws ClaimLost
   */
  advance(
    change: Partial<Pick<JobRow, 'processed' | 'total' | 'reindex'>>,
    rows: readonly Write[],
  ): Promise<WriteOutcome> {
    const { clock } = this.#deps
    return this.#write(
      job =>
        changedJob(
          job,
          { ...change, ...crashCountAfterProgress(job, change), leaseUntil: this.#leaseEnd() },
          clock,
        ),
      (before, after) => [{ op: 'replace', table: tables.jobs, row: after, version: before.version }],
      rows,
      writes => this.#deps.rows.atomic(writes),
    )
  }

  /**
   * Ends the job in the transaction that stores its result.
   *
   * @returns the outcome; `at` of a failure is an index in `rows` followed by the content changes of `apply`
   * @throws ClaimLost
   */
  succeed(
    result: NonNullable<Job['result']>,
    rows: readonly Write[],
    apply: ApplyWrites,
  ): Promise<WriteOutcome> {
    const { clock } = this.#deps
    const end = { status: 'succeeded', result, processed: result.chunks, total: result.chunks } as const
    return this.#write(job => endedJob(job, end, clock), endingWrites, rows, apply)
  }

  /** Ends the job and its document as failed, unless the job was lost. */
  async fail(failure: IngestFailure): Promise<void> {
    await this.#enqueue(async () => {
      const ended = this.#isLost ? undefined : await failJob(this.#deps, this.#stored, failure)
      if (ended) this.#deps.jobEvents.emit(ended)
    })
  }

  /** Ends the lease immediately, so that another process can take over the job. */
  async release(): Promise<void> {
    const now = timestamp(this.#deps.clock)
    await this.#enqueue(() => this.#renew({ leaseOwner: null, leaseUntil: now }))
  }

  /** Stops the work on the job. */
  interrupt(): void {
    this.#abortController.abort()
  }

  /** Stops the work on the job, because it was cancelled or taken over. */
  markLost(): void {
    this.#isLost = true
    this.interrupt()
  }

  /** Stops renewing the lease. */
  close(): void {
    this.#cancelRenewal()
  }

  #enqueue<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#lastWrite.then(work)
    this.#lastWrite = result.catch(() => {})
    return result
  }

  #write(
    change: (job: JobRow) => JobRow,
    writesOf: (before: Stored<JobRow>, after: JobRow) => Write[],
    rows: readonly Write[],
    apply: ApplyWrites,
  ): Promise<WriteOutcome> {
    return this.#enqueue(async () => {
      if (this.#isLost) throw new ClaimLost()
      const after = change(this.job)
      const jobWrites = writesOf(this.#stored, after)
      const outcome = await apply([...jobWrites, ...rows])
      if (outcome.ok) {
        this.#storeRow(after)
        this.#deps.jobEvents.emit(after)
        return outcome
      }
      if (outcome.at > 0) return { ...outcome, at: outcome.at - jobWrites.length }
      this.markLost()
      throw new ClaimLost()
    })
  }

  #storeRow(row: JobRow): void {
    this.#stored = { ...this.#stored, row, version: this.#stored.version + 1 }
  }

  #leaseEnd(): string {
    return new Date(this.#deps.clock.now() + this.#deps.leaseMs).toISOString()
  }

  #scheduleRenewal(): void {
    const { clock, log, leaseMs } = this.#deps
    this.#cancelRenewal = clock.after(leaseMs / renewalsPerLease, () => {
      this.#enqueue(() => this.#renew({ leaseUntil: this.#leaseEnd() }))
        .catch(error => log.warn({ jobId: this.job.jobId, error }, 'the lease of a job could not be renewed'))
        .finally(() => {
          if (!this.signal.aborted) this.#scheduleRenewal()
        })
    })
  }

  /** Changes the lease. Keeps `updatedAt`, because leases are not visible to clients. */
  async #renew(lease: Partial<JobRow>): Promise<void> {
    if (this.#isLost || this.job.endedAt !== null) return
    const row = { ...this.job, ...lease }
    const { version } = this.#stored
    const outcome = await this.#deps.rows.atomic([{ op: 'replace', table: tables.jobs, row, version }])
    if (outcome.ok) this.#storeRow(row)
    else this.markLost()
  }
}

/** If the job made progress, returns the field that resets the number of crashed processes. */
function crashCountAfterProgress(
  { processed }: JobRow,
  change: Partial<Pick<Job, 'processed'>>,
): Pick<JobRow, 'deaths'> {
  return (change.processed ?? 0) > processed ? { deaths: 0 } : {}
}
