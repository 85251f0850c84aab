import { LRUCache } from 'lru-cache'
import type { Clock } from '../base/clock.ts'
import { once } from '../base/once.ts'
import { WbError } from '../contract/errors.ts'
import type { HeaderPairs } from './headers.ts'

/** How many requests one client may send. */
export interface RateLimits {
  /** In this time an empty bucket fills up. */
  readonly windowMs: number
  readonly capacity: number
  /** For requests that passed no proxy. */
  readonly directCapacity: number
  /** For the routes that start a sign-in. */
  readonly authCapacity: number
}

/** What a bucket says to one request. */
export interface Taken {
  readonly isGranted: boolean
  /** Whole tokens that are left. */
  readonly remaining: number
  readonly fullInMs: number
  /** Until there is a token; zero for a request that got one. */
  readonly nextInMs: number
}

/** Token buckets by key. A key that was never seen, or not for a window, has a full one. */
export interface RateBuckets {
  /** Take one token, if there is one. A key always comes with the same capacity. */
  take(key: string, capacity: number): Taken
}

/** Buckets that are kept; at most 10 MB. */
const bucketsMax = 50_000

/** To look through all buckets costs milliseconds; a flood of addresses may cause it this often. */
const sweepEveryMs = 1_000

/** What is missing in a bucket. The unit is a token times a millisecond of the window, so that all sums are whole. */
interface Bucket {
  owed: number
  at: number
}

/**
 * Buckets of this process. Where there are more than can be kept, full ones go first, as they say no more than no
 * bucket would, then those that were used longest ago.
 */
export class MemoryBuckets implements RateBuckets {
  readonly #clock: Clock
  readonly #windowMs: number
  readonly #max: number
  readonly #kept: () => LRUCache<string, Bucket>
  #sweepAt = 0

  constructor({ clock, windowMs, max = bucketsMax }: { clock: Clock; windowMs: number; max?: number }) {
    this.#clock = clock
    this.#windowMs = windowMs
    this.#max = max
    // It takes its room at once: commands that open a runtime of their own come without it.
    this.#kept = once(() => new LRUCache({ max, ttl: windowMs, ttlResolution: 0, perf: clock }))
  }

  /** Buckets that are kept. */
  get size(): number {
    return this.#kept().size
  }

  take(key: string, capacity: number): Taken {
    const now = this.#clock.now()
    const found = this.#kept().get(key)
    const owed = found ? Math.max(0, found.owed - Math.max(0, now - found.at) * capacity) : 0
    const after = owed + this.#windowMs
    const room = capacity * this.#windowMs - after
    if (room < 0) {
      const [fullInMs, nextInMs] = [Math.ceil(owed / capacity), Math.ceil(-room / capacity)]
      return { isGranted: false, remaining: 0, fullInMs, nextInMs }
    }
    if (!found) this.#makeRoom(now)
    const fullInMs = Math.ceil(after / capacity)
    this.#kept().set(key, { owed: after, at: now }, { ttl: fullInMs })
    return { isGranted: true, remaining: Math.floor(room / this.#windowMs), fullInMs, nextInMs: 0 }
  }

  #makeRoom(now: number): void {
    if (this.#kept().size < this.#max || now < this.#sweepAt) return
    this.#kept().purgeStale()
    this.#sweepAt = now + sweepEveryMs
  }
}

/** Which bucket a route draws from: that of sign-ins, or that of everything else. */
export type Ration = 'general' | 'signIn'

/** Where requests are counted: where the data is, and where credentials could be tried. */
const limited = ['/api/v1/', '/auth/', '/setup', '/.well-known/']

/**
 * The bucket of a path; undefined where requests are not limited.
 *
 * @see docs/requirements.md#S8-06, docs/requirements.md#S8-07
 */
export function rationOf(path: string): Ration | undefined {
  if (path === '/auth/login' || path === '/auth/callback' || path.startsWith('/auth/device/')) return 'signIn'
  return limited.some(prefix => path.startsWith(prefix)) ? 'general' : undefined
}

/** Who asks for a token. */
export interface Asking {
  readonly ration: Ration
  /** Address of the client. */
  readonly client: string
  readonly isForwarded: boolean
}

/** The limit on requests per client. */
export class RateLimit {
  readonly #limits: RateLimits
  readonly #buckets: RateBuckets

  constructor(limits: RateLimits, buckets: RateBuckets) {
    this.#limits = limits
    this.#buckets = buckets
  }

  /**
   * Take a token for a request, and add to its headers what is left.
   *
   * @throws rate_limited  none is left
   */
  take(asking: Asking, headers: HeaderPairs): void {
    const [key, capacity] = this.#bucketOf(asking)
    const { isGranted, remaining, fullInMs, nextInMs } = this.#buckets.take(key, capacity)
    headers.push(
      ['x-ratelimit-limit', String(capacity)],
      ['x-ratelimit-remaining', String(remaining)],
      ['x-ratelimit-reset', String(seconds(fullInMs))],
    )
    if (isGranted) return
    throw new WbError('rate_limited', 'too many requests came from this address', {
      headers: { 'retry-after': String(Math.max(1, seconds(nextInMs))) },
    })
  }

  #bucketOf({ ration, client, isForwarded }: Asking): [key: string, capacity: number] {
    const { capacity, directCapacity, authCapacity } = this.#limits
    if (ration === 'signIn') return [`sign-in ${client}`, authCapacity]
    if (isForwarded || directCapacity === capacity) return [client, capacity]
    return [`direct ${client}`, directCapacity]
  }
}

function seconds(ms: number): number {
  return Math.ceil(ms / 1_000)
}
