import type { RecentError } from '../contract/runtime-routes.ts'

const capacity = 100

/** The last 100 errors of this process, except validation errors and exceeded rate limits. */
export class RecentErrors {
  readonly capacity = capacity
  readonly #errors: RecentError[] = []

  get count(): number {
    return this.#errors.length
  }

  add(error: RecentError): void {
    if (error.code === 'validation_error' || error.code === 'rate_limited') return
    this.#errors.push(error)
    if (this.#errors.length > capacity) this.#errors.shift()
  }

  /** Returns the errors, newest first. */
  list(): RecentError[] {
    return this.#errors.toReversed()
  }
}
