import { LRUCache } from 'lru-cache'
import type { Clock } from '../base/clock.ts'
import type { RerankingService } from '../contract/services.ts'
import { ProviderFailure } from './provider/provider-failure.ts'

/** Number of timeouts in a row after which a service is paused. */
const timeoutsMax = 3
/** Time for which a service is paused. Then one search calls it again, and others continue to skip it for this time. */
const pauseMs = 30_000
/** Maximum number of services whose timeouts are counted. */
const servicesMax = 1_000

/** Pauses reranking services that do not respond, so that not every search waits for its time limit. */
export class RerankerPauses {
  readonly #timeouts = new LRUCache<string, { readonly count: number; readonly atMs: number }>({
    max: servicesMax,
  })

  constructor(private readonly clock: Clock) {}

  /** Returns the failure of searches that use the service; undefined if it is not paused. */
  failure(service: RerankingService): ProviderFailure | undefined {
    const { count, atMs } = this.#timeouts.get(keyOf(service)) ?? { count: 0, atMs: 0 }
    if (count < timeoutsMax || this.clock.now() - atMs >= pauseMs) return undefined
    return new ProviderFailure('is paused, because it repeatedly did not respond in time', {
      hint: `Check its server, increase requestTimeoutMs, or use a faster model. Searches try it again after ${pauseMs / 1_000} seconds.`,
    })
  }

  /**
   * Call this before a request.
   *
   * @throws ProviderFailure  the service is paused
   */
  start(service: RerankingService): void {
    const failure = this.failure(service)
    if (failure) throw failure
    const { count } = this.#timeouts.get(keyOf(service)) ?? { count: 0 }
    if (count >= timeoutsMax) this.#timeouts.set(keyOf(service), { count, atMs: this.clock.now() })
  }

  /** Records that a request timed out. */
  recordTimeout(service: RerankingService): void {
    const { count } = this.#timeouts.get(keyOf(service)) ?? { count: 0 }
    this.#timeouts.set(keyOf(service), { count: count + 1, atMs: this.clock.now() })
  }

  /** Records that a service responded, with or without an error. */
  recordResponse(service: RerankingService): void {
    this.#timeouts.delete(keyOf(service))
  }
}

/** A service that was changed gets a new key, so it is called at once. */
function keyOf({ rerankingServiceId, updatedAt }: RerankingService): string {
  return `${rerankingServiceId} ${updatedAt}`
}
