import { LRUCache } from 'lru-cache'
import type { Clock } from '../../base/clock.ts'

/**
 * Shares the results of renewals. A refresh token can be used only once, but two tabs or processes of a user can
 * send the same token. The current implementation shares only the renewals of this process.
 */
export interface SharedRenewals<T> {
  /**
   * Returns the result of a running or recent renewal of the session. Otherwise, calls `renew`.
   *
   * @param key  identifies the session to renew
   */
  once(key: string, renew: () => Promise<T>): Promise<T>
}

/** Time for which the result of a renewal is stored for later requests, in milliseconds. */
const renewalTtlMs = 30_000
/** Maximum number of stored results. When it is reached, the oldest is removed. */
const renewalsMax = 1_024

export interface RenewalRules<T> {
  readonly clock: Clock
  /** Returns the key that the next renewal of the renewed session will use. */
  readonly keyOf: (outcome: T) => string
  /** Returns the lifetime of the result in seconds; undefined for no limit. */
  readonly lifetimeSeconds: (outcome: T) => number | undefined
}

/** Shares renewals within this process. Does not store failures, so the next request tries again. */
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
    const renewal = renew()
      .then(outcome => this.#storeOutcome(key, outcome))
      .finally(() => this.#running.delete(key))
    this.#running.set(key, renewal)
    return renewal
  }

  /** Follows the chain of renewals to the last result, because all earlier refresh tokens have already been used. */
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
