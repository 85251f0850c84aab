import type { Job } from '../../contract/jobs.ts'
import type { Problem } from './ingest-item.ts'
import type { IngestOutcome } from './ingest-batch.ts'

/** Maximum number of entries to list by name. Further entries are only counted. */
export const listedByNameMax = 10_000

/** A text queued as a job, and how to count it if the job succeeds. */
export interface QueuedText {
  readonly path: string
  readonly as: 'added' | 'replaced'
  readonly job: Job
}

/** Counts of an ingest. */
export class Tally {
  added = 0
  replaced = 0
  unchanged = 0
  duplicates = 0
  failed = 0
  skipped = 0
  readonly queued: QueuedText[] = []
  readonly failures: Problem[] = []
  readonly sameText: { path: string; sameAs: string }[] = []
  readonly skippedAs = new Map<string, number>()

  /** Number of documents and problems processed. */
  get done(): number {
    return this.queued.length + this.ended
  }

  private get ended(): number {
    return this.added + this.replaced + this.unchanged + this.duplicates + this.failed
  }

  countFailure(problem: Problem): void {
    this.failed++
    if (this.failures.length < listedByNameMax) this.failures.push(problem)
  }

  countSkipped(as: string): void {
    this.skipped++
    this.skippedAs.set(as, (this.skippedAs.get(as) ?? 0) + 1)
  }

  /** Counts the result of the job that was queued first. */
  countEndedJob({ status, errorMessage }: Job): void {
    const { path, as } = this.queued.shift()!
    if (status === 'failed')
      this.countFailure({ path, code: 'job_failed', message: errorMessage ?? 'the job failed' })
    else this[as]++
  }

  count(path: string, outcome: IngestOutcome): void {
    if (outcome.result === 'failed') this.countFailure({ path, code: outcome.code, message: outcome.message })
    else if (outcome.result === 'duplicate') {
      this.duplicates++
      if (this.sameText.length < listedByNameMax) this.sameText.push({ path, sameAs: outcome.sameAs })
    } else if (outcome.result === 'queued') this.queued.push({ path, as: outcome.as, job: outcome.job })
    else this[outcome.result]++
  }
}
