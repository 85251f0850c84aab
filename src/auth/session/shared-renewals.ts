import { LRUCache } from 'lru-cache'
import type { Clock } from '../../base/clock.ts'

/**
 * Shared renewals. A refresh token is valid once, and two tabs or processes of a user hold the same one. Each
 * replica stores its own; a shared store can replace this one.
 */
export interface SharedRenewals<T> {
  /**
   * Returns the result of a running renewal, of a recent one, or otherwise of this one.
   *
   * @param key  identifies the session to renew
   */
  once(key: string, renew: () => Promise<T>): Promise<T>
}

/** Time for which late requests get the result of a renewal, in milliseconds. */
const renewalTtlMs = 30_000
/** Maximum number of stored results. Above it, the oldest are removed. */
const renewalsMax = 1_024

export interface RenewalRules<T> {
  readonly clock: Clock
  /** Returns the key under which the result itself will be renewed. */
  readonly keyOf: (outcome: T) => string
  /** Returns how long the result is valid; undefined for no limit. */
  readonly lifetimeSeconds: (outcome: T) => number | undefined
}

/** Renewals in the memory of this process. A failure is not stored, so the next request tries again. */
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

  /** Follows the chain of renewals to the last result, because the refresh tokens before it are used up. */
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
