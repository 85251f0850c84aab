import { LRUCache } from 'lru-cache'
import type { Clock } from '../../base/clock.ts'
import type { ProviderFailure } from '../provider/provider-failure.ts'

/** Maximum number of models whose last failure is stored. */
const modelsMax = 1_000
/** Time after which a failure is ignored. */
const failureTtlMs = 3_600_000

/** The last failure of each model. The number of failures is limited, and each is available for an hour. */
export class LastFailures {
  readonly #failures = new LRUCache<string, { readonly failure: ProviderFailure; readonly atMs: number }>({
    max: modelsMax,
  })

  constructor(private readonly clock: Clock) {}

  get(key: string): ProviderFailure | undefined {
    const stored = this.#failures.get(key)
    return stored && this.clock.now() - stored.atMs < failureTtlMs ? stored.failure : undefined
  }

  set(key: string, failure: ProviderFailure): void {
    this.#failures.set(key, { failure, atMs: this.clock.now() })
  }

  delete(key: string): void {
    this.#failures.delete(key)
  }
}
