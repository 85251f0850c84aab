import { LRUCache } from 'lru-cache'
import type { Clock } from '../../base/clock.ts'
import type { ProviderFailure } from '../provider/provider-failure.ts'

/** Maximum number of models whose last failure is kept. */
const modelsMax = 1_000
/** Time after which a failure is outdated. */
const keptMs = 3_600_000

/** The last failure of each model, until it answers again. A bounded number of them is kept for an hour. */
export class LastFailures {
  readonly #known = new LRUCache<string, { readonly failure: ProviderFailure; readonly atMs: number }>({
    max: modelsMax,
  })

  constructor(private readonly clock: Clock) {}

  get(key: string): ProviderFailure | undefined {
    const known = this.#known.get(key)
    return known && this.clock.now() - known.atMs < keptMs ? known.failure : undefined
  }

  set(key: string, failure: ProviderFailure): void {
    this.#known.set(key, { failure, atMs: this.clock.now() })
  }

  delete(key: string): void {
    this.#known.delete(key)
  }
}
