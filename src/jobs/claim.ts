import { type Clock, timestamp } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { Job } from '../contract/jobs.ts'
import type { Outcome, RowStore, Stored, Write } from '../storage/rows.ts'
import { type JobRow, tables } from '../storage/tables.ts'
import { changedJob, endedJob, endingWrites, failJob } from './changes.ts'
import type { JobNews } from './news.ts'

/** Renewals within the time of one lease. */
const renewalsPerLease = 3

export interface ClaimParts {
  readonly rows: RowStore
  readonly clock: Clock
  readonly log: Log
  readonly news: JobNews
  readonly owner: string
  readonly leaseMs: number
}

/** Somebody cancelled the job or took it over: what is written for it here would be refused. */
export class ClaimLost extends Error {
  override readonly name = 'ClaimLost'
}

/** Applies a unit of row writes, perhaps with others of another store. */
type Apply = (rows: readonly Write[]) => Promise<Outcome>

/**
 * A job that this process works on.
 *
 * Whoever changes the job raises its version, so that of two who believe it theirs only one can write for it. Writes
 * for it wait for each other, as each needs the version that the one before it made.
 */
export class Claim {
  readonly #parts: ClaimParts
  readonly #stop = new AbortController()
  #held: Stored<JobRow>
  #last: Promise<unknown> = Promise.resolve()
  #isLost = false
  #callOff = () => {}

  /** @param held  the job as it was claimed */
  constructor(parts: ClaimParts, held: Stored<JobRow>) {
    this.#parts = parts
    this.#held = held
    this.#renewLater()
  }

  get job(): JobRow {
    return this.#held.row
  }

  /** Aborts when the work is to end: the job is lost, or the process closes. */
  get signal(): AbortSignal {
    return this.#stop.signal
  }

  get isLost(): boolean {
    return this.#isLost
  }

  /**
   * Tell how far the work is, in one unit with other writes.
   *
   * @returns which of `rows` was refused, counted from 0
   * @throws ClaimLost
   */
  advance(change: Partial<Pick<Job, 'processed' | 'total'>>, rows: readonly Write[]): Promise<Outcome> {
    const { clock } = this.#parts
    return this.#write(
      job => changedJob(job, { ...change, ...furtherThan(job, change), leaseUntil: this.#leaseEnd() }, clock),
      (before, after) => [{ op: 'replace', table: tables.jobs, row: after, version: before.version }],
      rows,
      unit => this.#parts.rows.atomic(unit),
    )
  }

  /**
   * End the job in the unit that makes its result last.
   *
   * @returns which of `rows`, or of what `apply` adds to them, was refused, counted from 0
   * @throws ClaimLost
   */
  succeed(result: NonNullable<Job['result']>, rows: readonly Write[], apply: Apply): Promise<Outcome> {
    const { clock } = this.#parts
    const end = { status: 'succeeded', result, processed: result.chunks, total: result.chunks } as const
    return this.#write(job => endedJob(job, end, clock), endingWrites, rows, apply)
  }

  /** End the job and its document as failed, unless it is lost. */
  async fail(errorMessage: string): Promise<void> {
    await this.#inTurn(async () => {
      const ended = this.#isLost ? undefined : await failJob(this.#parts, this.#held, errorMessage)
      if (ended) this.#parts.news.tell(ended)
    })
  }

  /** Leave the job to whoever comes next, at once. */
  async release(): Promise<void> {
    const lapsed = timestamp(this.#parts.clock)
    await this.#inTurn(() => this.#renew({ leaseOwner: null, leaseUntil: lapsed }))
  }

  /** Stop working on it. */
  interrupt(): void {
    this.#stop.abort()
  }

  /** Stop working on it: it is no longer ours. */
  lose(): void {
    this.#isLost = true
    this.interrupt()
  }

  /** Renew its lease no more. */
  close(): void {
    this.#callOff()
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(work)
    this.#last = turn.catch(() => {})
    return turn
  }

  #write(
    change: (job: JobRow) => JobRow,
    writesOf: (before: Stored<JobRow>, after: JobRow) => Write[],
    rows: readonly Write[],
    apply: Apply,
  ): Promise<Outcome> {
    return this.#inTurn(async () => {
      if (this.#isLost) throw new ClaimLost()
      const after = change(this.job)
      const own = writesOf(this.#held, after)
      const outcome = await apply([...own, ...rows])
      if (outcome.ok) {
        this.#keep(after)
        this.#parts.news.tell(after)
        return outcome
      }
      if (outcome.at > 0) return { ...outcome, at: outcome.at - own.length }
      this.lose()
      throw new ClaimLost()
    })
  }

  #keep(row: JobRow): void {
    this.#held = { ...this.#held, row, version: this.#held.version + 1 }
  }

  #leaseEnd(): string {
    return new Date(this.#parts.clock.now() + this.#parts.leaseMs).toISOString()
  }

  #renewLater(): void {
    const { clock, log, leaseMs } = this.#parts
    this.#callOff = clock.after(leaseMs / renewalsPerLease, () => {
      this.#inTurn(() => this.#renew({ leaseUntil: this.#leaseEnd() }))
        .catch(error => log.warn({ jobId: this.job.jobId, error }, 'the lease of a job could not be renewed'))
        .finally(() => {
          if (!this.signal.aborted) this.#renewLater()
        })
    })
  }

  /** Nobody outside sees a lease, so `updatedAt` stays. */
  async #renew(lease: Partial<JobRow>): Promise<void> {
    if (this.#isLost || this.job.endedAt !== null) return
    const row = { ...this.job, ...lease }
    const { version } = this.#held
    const outcome = await this.#parts.rows.atomic([{ op: 'replace', table: tables.jobs, row, version }])
    if (outcome.ok) this.#keep(row)
    else this.lose()
  }
}

/** What is forgotten of a job that got further. */
function furtherThan({ processed }: JobRow, change: Partial<Pick<Job, 'processed'>>): Pick<JobRow, 'deaths'> {
  return (change.processed ?? 0) > processed ? { deaths: 0 } : {}
}
