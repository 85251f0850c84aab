import type { Job } from '../../contract/jobs.ts'
import type { IngestOutcome } from './ingest-batch.ts'
import type { Problem, Skipped } from './ingest-item.ts'

/** Maximum number of failures, of duplicates, and of skipped files of a category, to list by name. All others are only counted. */
export const listedByNameMax = 10_000

/** A text that is processed by a job. */
export interface QueuedText {
  readonly path: string
  /** Count to increase if the job succeeds. */
  readonly resultOnSuccess: 'added' | 'replaced'
  readonly job: Job
}

/** Skipped files of one category. */
interface SkippedCategory {
  count: number
  readonly reason: string
  /** The first {@link listedByNameMax} paths. */
  readonly paths: string[]
}

/** Counts the results of an ingest. */
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
  /** Skipped files by {@link Skipped.category}. */
  readonly skippedByCategory = new Map<string, SkippedCategory>()

  /** Number of documents and problems processed. */
  get processedCount(): number {
    const { queued, added, replaced, unchanged, duplicates, failed } = this
    return queued.length + added + replaced + unchanged + duplicates + failed
  }

  countFailure(problem: Problem): void {
    this.failed++
    if (this.failures.length < listedByNameMax) this.failures.push(problem)
  }

  countSkipped({ category, path, reason }: Skipped): void {
    this.skipped++
    const files = this.skippedByCategory.get(category) ?? { count: 0, reason, paths: [] }
    files.count++
    if (files.paths.length < listedByNameMax) files.paths.push(path)
    this.skippedByCategory.set(category, files)
  }

  /** Counts the result of the first queued job after it has ended, and removes it from the queue. */
  countEndedJob({ status, errorMessage }: Job): void {
    const { path, resultOnSuccess } = this.queued.shift()!
    if (status === 'failed')
      this.countFailure({ path, code: 'job_failed', message: errorMessage ?? 'the job failed' })
    else this[resultOnSuccess]++
  }

  count(path: string, outcome: IngestOutcome): void {
    if (outcome.result === 'failed') this.countFailure({ path, code: outcome.code, message: outcome.message })
    else if (outcome.result === 'duplicate') {
      this.duplicates++
      if (this.sameText.length < listedByNameMax) this.sameText.push({ path, sameAs: outcome.sameAs })
    } else if (outcome.result === 'queued') {
      const { resultOnSuccess, job } = outcome
      this.queued.push({ path, resultOnSuccess, job })
    } else this[outcome.result]++
  }
}
