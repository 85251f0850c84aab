import { LRUCache } from 'lru-cache'
import type { Clock } from '../base/clock.ts'
import { once } from '../base/once.ts'
import { WbError } from '../contract/errors.ts'
import type { HeaderPairs } from './headers.ts'

/** Limits on the requests of one client. */
export interface RateLimits {
  /** Time in which an empty bucket refills, in milliseconds. */
  readonly windowMs: number
  readonly capacity: number
  /** Capacity for requests that passed no proxy. */
  readonly directCapacity: number
  /** Capacity for routes that start a sign-in. */
  readonly authCapacity: number
}

/** Result of taking a token. */
export interface TokenGrant {
  readonly isGranted: boolean
  /** Number of whole tokens left. */
  readonly remaining: number
  readonly fullInMs: number
  /** Time until a token is available, in milliseconds; 0 if the request got one. */
  readonly nextInMs: number
}

/** Token buckets by key. The bucket of a key that is new, or unused for a window, is full. */
export interface RateBuckets {
  /** Takes a token if there is one. The capacity of a key must not change. */
  take(key: string, capacity: number): TokenGrant
}

/** Maximum number of buckets in memory, which take at most 10 MB. */
const bucketsMax = 50_000

/**
 * Minimum time between two scans of all buckets, in milliseconds. A scan takes milliseconds, and a flood of
 * addresses could cause many.
 */
const sweepEveryMs = 1_000

/** Deficit of a bucket, in tokens times milliseconds of the window, so that all sums are integers. */
interface Bucket {
  owed: number
  at: number
}

/**
 * Buckets in the memory of this process. Above the maximum, full ones are evicted first because they carry no
 * information, then the least recently used.
 */
export class MemoryBuckets implements RateBuckets {
  readonly #clock: Clock
  readonly #windowMs: number
  readonly #max: number
  readonly #buckets: () => LRUCache<string, Bucket>
  #sweepAt = 0

  constructor({ clock, windowMs, max = bucketsMax }: { clock: Clock; windowMs: number; max?: number }) {
    this.#clock = clock
    this.#windowMs = windowMs
    this.#max = max
    // The cache allocates all its memory at once, so commands that open their own runtime do not create it.
    const limits = { max, ttl: windowMs, ttlResolution: 0, perf: clock }
    // Deleting the only entry clears arrays for `max` entries, which takes 0.25 ms.
    this.#buckets = once(() => new LRUCache({ ...limits, noDeleteOnStaleGet: true }))
  }

  /** Number of buckets in memory. */
  get size(): number {
    return this.#buckets().size
  }

  take(key: string, capacity: number): TokenGrant {
    const now = this.#clock.now()
    const found = this.#buckets().get(key)
    const owed = found ? Math.max(0, found.owed - Math.max(0, now - found.at) * capacity) : 0
    const after = owed + this.#windowMs
    const room = capacity * this.#windowMs - after
    if (room < 0) {
      const [fullInMs, nextInMs] = [Math.ceil(owed / capacity), Math.ceil(-room / capacity)]
      return { isGranted: false, remaining: 0, fullInMs, nextInMs }
    }
    if (!found) this.#makeRoom(now)
    const fullInMs = Math.ceil(after / capacity)
    this.#buckets().set(key, { owed: after, at: now }, { ttl: fullInMs })
    return { isGranted: true, remaining: Math.floor(room / this.#windowMs), fullInMs, nextInMs: 0 }
  }

  #makeRoom(now: number): void {
    if (this.#buckets().size < this.#max || now < this.#sweepAt) return
    this.#buckets().purgeStale()
    this.#sweepAt = now + sweepEveryMs
  }
}

/** Rate limit class of a route: sign-in, or all other routes. */
export type RateLimitClass = 'general' | 'signIn'

/** Path prefixes with a rate limit: where data is served, or where credentials could be guessed. */
const limitedPrefixes = ['/api/v1/', '/auth/', '/setup', '/.well-known/']

/**
 * Returns the rate limit class of a path; undefined if requests are not limited.
 *
 * @see docs/requirements.md#S8-06, docs/requirements.md#S8-07
 */
export function rateLimitClassOf(path: string): RateLimitClass | undefined {
  if (path === '/auth/login' || path === '/auth/callback' || path.startsWith('/auth/device/')) return 'signIn'
  return limitedPrefixes.some(prefix => path.startsWith(prefix)) ? 'general' : undefined
}

/** Client and class of a request for a token. */
export interface TokenRequest {
  readonly rateLimitClass: RateLimitClass
  /** IP address of the client. */
  readonly client: string
  readonly isForwarded: boolean
}

/** Limits the requests of each client. */
export class RateLimit {
  readonly #limits: RateLimits
  readonly #buckets: RateBuckets

  constructor(limits: RateLimits, buckets: RateBuckets) {
    this.#limits = limits
    this.#buckets = buckets
  }

  /**
   * Takes a token for a request, and adds the remaining limit to its response headers.
   *
   * @throws rate_limited  when no token is left
   */
  take(request: TokenRequest, headers: HeaderPairs): void {
    const [key, capacity] = this.#bucketOf(request)
    const { isGranted, remaining, fullInMs, nextInMs } = this.#buckets.take(key, capacity)
    headers.push(
      ['x-ratelimit-limit', String(capacity)],
      ['x-ratelimit-remaining', String(remaining)],
      ['x-ratelimit-reset', String(toSeconds(fullInMs))],
    )
    if (isGranted) return
    throw new WbError('rate_limited', 'too many requests came from this address', {
      headers: { 'retry-after': String(Math.max(1, toSeconds(nextInMs))) },
    })
  }

  #bucketOf({ rateLimitClass, client, isForwarded }: TokenRequest): [key: string, capacity: number] {
    const { capacity, directCapacity, authCapacity } = this.#limits
    if (rateLimitClass === 'signIn') return [`sign-in ${client}`, authCapacity]
    if (isForwarded || directCapacity === capacity) return [client, capacity]
    return [`direct ${client}`, directCapacity]
  }
}

function toSeconds(ms: number): number {
  return Math.ceil(ms / 1_000)
}
