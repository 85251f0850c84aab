import type { Job } from '../../contract/jobs.ts'
import type { IngestOutcome } from './ingest-batch.ts'
import type { Problem, Skipped } from './ingest-item.ts'

/** Maximum number of entries to list by name. Further entries are only counted. */
export const listedByNameMax = 10_000
/** Maximum number of skipped files of a kind to name. */
export const skippedNamesMax = 3

/** A text queued as a job, and how to count it if the job succeeds. */
export interface QueuedText {
  readonly path: string
  readonly as: 'added' | 'replaced'
  readonly job: Job
}

/** Skipped files of one kind. */
interface SkippedKind {
  count: number
  readonly reason: string
  /** The first {@link skippedNamesMax} paths. */
  readonly paths: string[]
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
  /** Skipped files by kind. */
  readonly skippedAs = new Map<string, SkippedKind>()

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

  countSkipped({ as, path, reason }: Skipped): void {
    this.skipped++
    const kind = this.skippedAs.get(as) ?? { count: 0, reason, paths: [] }
    kind.count++
    if (kind.paths.length < skippedNamesMax) kind.paths.push(path)
    this.skippedAs.set(as, kind)
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
