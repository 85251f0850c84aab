import type { Problem } from './found.ts'
import type { Outcome } from './send.ts'

/** Entries of a list that are kept to be named; beyond, they are only counted. */
export const listedMax = 10_000

/** What became of everything that was found. */
export class Tally {
  added = 0
  replaced = 0
  unchanged = 0
  duplicates = 0
  failed = 0
  skipped = 0
  readonly failures: Problem[] = []
  readonly sameText: { path: string; sameAs: string }[] = []
  readonly skippedAs = new Map<string, number>()

  /** Documents and problems that are through. */
  get done(): number {
    return this.added + this.replaced + this.unchanged + this.duplicates + this.failed
  }

  fail(problem: Problem): void {
    this.failed++
    if (this.failures.length < listedMax) this.failures.push(problem)
  }

  skip(as: string): void {
    this.skipped++
    this.skippedAs.set(as, (this.skippedAs.get(as) ?? 0) + 1)
  }

  take(path: string, outcome: Outcome): void {
    if (outcome.result === 'failed') this.fail({ path, code: outcome.code, message: outcome.message })
    else if (outcome.result === 'duplicate') {
      this.duplicates++
      if (this.sameText.length < listedMax) this.sameText.push({ path, sameAs: outcome.sameAs })
    } else this[outcome.result]++
  }
}
