import { LRUCache } from 'lru-cache'
import type { Clock } from '../../base/clock.ts'
import type { ProviderFailure } from '../provider/provider-failure.ts'

/** Maximum number of models whose last failure is stored. */
const modelsMax = 1_000
/** Time after which a failure is ignored. */
const failureTtlMs = 3_600_000

/** The last failure of each model. Stores each failure for an hour, and a limited number of failures. */
export class LastFailures {
  readonly #failures = new LRUCache<
    string,
    { readonly failure: ProviderFailure; readonly failedAtMs: number }
  >({
    max: modelsMax,
  })

  constructor(private readonly clock: Clock) {}

  get(key: string): ProviderFailure | undefined {
    const stored = this.#failures.get(key)
    return stored && this.clock.now() - stored.failedAtMs < failureTtlMs ? stored.failure : undefined
  }

  set(key: string, failure: ProviderFailure): void {
    this.#failures.set(key, { failure, failedAtMs: this.clock.now() })
  }

  delete(key: string): void {
    this.#failures.delete(key)
  }
}
