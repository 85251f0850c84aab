import { LRUCache } from 'lru-cache'
import type { Clock } from '../../base/clock.ts'

/**
 * Renewals that several askers share: refresh tokens are good once, and two tabs or two processes of one person hold
 * the same one. One replica keeps its own; a shared store can stand here.
 */
export interface Renewals<T> {
  /**
   * What came of renewing something: of a renewal that runs, of one that was done a moment ago, else of this one.
   *
   * @param key  of what is renewed
   */
  once(key: string, renew: () => Promise<T>): Promise<T>
}

/** How long who asks late is given what came of it. */
const renewalKeptMs = 30_000
/** The oldest give way. */
const renewalsMax = 1_024

export interface RenewalRules<T> {
  readonly clock: Clock
  /** Under which the outcome itself will be renewed. */
  readonly keyOf: (outcome: T) => string
  /** How long the outcome is of use; undefined is long. */
  readonly lifetimeSeconds: (outcome: T) => number | undefined
}

/** In the memory of this process. What failed is not kept: the next one tries again. */
export class SharedRenewals<T extends object> implements Renewals<T> {
  readonly #running = new Map<string, Promise<T>>()
  readonly #done: LRUCache<string, T>

  constructor(private readonly rules: RenewalRules<T>) {
    this.#done = new LRUCache({ max: renewalsMax, ttl: renewalKeptMs, ttlResolution: 0, perf: rules.clock })
  }

  once(key: string, renew: () => Promise<T>): Promise<T> {
    const newest = this.#newest(key)
    const running = this.#running.get(newest?.key ?? key)
    if (running) return running
    if (newest) return Promise.resolve(newest.outcome)
    const started = renew()
      .then(outcome => this.#keep(key, outcome))
      .finally(() => this.#running.delete(key))
    this.#running.set(key, started)
    return started
  }

  /** What a late asker needs is the last outcome in a row: those between are spent. */
  #newest(first: string): { key: string; outcome: T } | undefined {
    let newest: { key: string; outcome: T } | undefined
    for (let steps = 0; steps < renewalsMax; steps++) {
      const outcome = this.#done.get(newest?.key ?? first)
      if (!outcome) break
      newest = { key: this.rules.keyOf(outcome), outcome }
    }
    return newest
  }

  #keep(key: string, outcome: T): T {
    const lifetimeMs = (this.rules.lifetimeSeconds(outcome) ?? Number.POSITIVE_INFINITY) * 1000
    const ttl = Math.min(renewalKeptMs, lifetimeMs)
    // Nothing new came: the next one who asks is the first to ask for what comes next.
    if (ttl > 0 && this.rules.keyOf(outcome) !== key) this.#done.set(key, outcome, { ttl })
    return outcome
  }
}
