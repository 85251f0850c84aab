import { LRUCache } from 'lru-cache'
import type { Clock } from '../../base/clock.ts'

/**
 * Shares the result of a renewal. A refresh token is valid only once, but two tabs or processes of a user can
 * send the same one. Each replica shares only its own renewals; an implementation with a shared store is possible.
 */
export interface SharedRenewals<T> {
  /**
   * Returns the result of a running or recent renewal of the session, or else calls `renew`.
   *
   * @param key  identifies the session to renew
   */
  once(key: string, renew: () => Promise<T>): Promise<T>
}

/** Time for which late requests get the result of a renewal, in milliseconds. */
const renewalTtlMs = 30_000
/** Maximum number of stored results. When it is reached, the oldest is removed. */
const renewalsMax = 1_024

export interface RenewalRules<T> {
  readonly clock: Clock
  /** Returns the key of the renewed session, for its next renewal. */
  readonly keyOf: (outcome: T) => string
  /** Returns how long the result is valid; undefined for no limit. */
  readonly lifetimeSeconds: (outcome: T) => number | undefined
}

/** Shares renewals within this process. Failures are not stored, so the next request tries again. */
export class MemoryRenewals<T extends object> implements SharedRenewals<T> {
  readonly #running = new Map<string, Promise<T>>()
  readonly #outcomes: LRUCache<string, T>

  constructor(private readonly rules: RenewalRules<T>) {
    this.#outcomes = new LRUCache({
      max: renewalsMax,
      ttl: renewalTtlMs,
      ttlResolution: 0,
      perf: rules.clock,
    })
  }

  once(key: string, renew: () => Promise<T>): Promise<T> {
    const newest = this.#newest(key)
    const running = this.#running.get(newest?.key ?? key)
    if (running) return running
    if (newest) return Promise.resolve(newest.outcome)
    const started = renew()
      .then(outcome => this.#storeOutcome(key, outcome))
      .finally(() => this.#running.delete(key))
    this.#running.set(key, started)
    return started
  }

  /** Follows the chain of renewals to the last result, because all earlier refresh tokens are used up. */
  #newest(first: string): { key: string; outcome: T } | undefined {
    let newest: { key: string; outcome: T } | undefined
    for (let steps = 0; steps < renewalsMax; steps++) {
      const outcome = this.#outcomes.get(newest?.key ?? first)
      if (!outcome) break
      newest = { key: this.rules.keyOf(outcome), outcome }
    }
    return newest
  }

  #storeOutcome(key: string, outcome: T): T {
    const lifetimeMs = (this.rules.lifetimeSeconds(outcome) ?? Number.POSITIVE_INFINITY) * 1000
    const ttl = Math.min(renewalTtlMs, lifetimeMs)
    // If the key is unchanged, the next request must start a new renewal.
    if (ttl > 0 && this.rules.keyOf(outcome) !== key) this.#outcomes.set(key, outcome, { ttl })
    return outcome
  }
}
