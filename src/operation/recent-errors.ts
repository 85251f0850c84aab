import type { RecentError } from '../contract/operational.ts'

const capacity = 100

/** The last errors of this process. Those that any client causes by its own slip are not among them. */
export class RecentErrors {
  readonly capacity = capacity
  readonly #errors: RecentError[] = []

  get count(): number {
    return this.#errors.length
  }

  note(error: RecentError): void {
    if (error.code === 'validation_error' || error.code === 'rate_limited') return
    this.#errors.push(error)
    if (this.#errors.length > capacity) this.#errors.shift()
  }

  /** Newest first. */
  list(): RecentError[] {
    return this.#errors.toReversed()
  }
}
