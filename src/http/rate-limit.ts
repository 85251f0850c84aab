import { LRUCache } from 'lru-cache'
import type { Clock } from '../base/clock.ts'
import { once } from '../base/once.ts'
import { WbError } from '../contract/errors.ts'
import type { HeaderPairs } from './headers.ts'

/** Limits on the requests of one client. */
export interface RateLimits {
  /** Time in milliseconds in which an empty bucket refills completely. */
  readonly windowMs: number
  readonly capacity: number
  /** Capacity for requests that did not pass through a proxy. */
  readonly directCapacity: number
  /** Capacity for routes that start a sign-in. */
  readonly authCapacity: number
}

/** Result of a request for a token. */
export interface TokenGrant {
  readonly isGranted: boolean
  /** Number of whole tokens left. */
  readonly remaining: number
  /** Time in milliseconds until the bucket is full again. */
  readonly fullInMs: number
  /** Time in milliseconds until a token is available; 0 if the request got one. */
  readonly nextInMs: number
}

/** Token buckets by key. A bucket is full if its key is new, or has not been used for a whole window. */
export interface RateBuckets {
  /** Takes a token if one is left. Every call for a key must use the same capacity. */
  take(key: string, capacity: number): TokenGrant
}

/** Maximum number of buckets in memory. They take at most 10 MB. */
const bucketsMax = 50_000

/**
 * Minimum time in milliseconds between two scans of all buckets. A scan takes milliseconds, and requests from many
 * addresses could cause many scans.
 */
const sweepIntervalMs = 1_000

interface Bucket {
  /** Number of missing tokens, multiplied by the window in milliseconds so that all sums are integers. */
  deficit: number
  updatedAt: number
}

/**
 * Buckets in the memory of this process. If there are more than the maximum, full buckets are evicted first, because
 * they contain no information, and then the least recently used ones.
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
    // Created on first use, because the cache allocates all its memory at once, and CLI commands that open a
    // runtime do not need it.
    const cacheOptions = { max, ttl: windowMs, ttlResolution: 0, perf: clock }
    // Reads do not delete stale entries: deleting the only entry clears arrays for `max` entries, which takes 0.25 ms.
    this.#buckets = once(() => new LRUCache({ ...cacheOptions, noDeleteOnStaleGet: true }))
  }

  /** Number of buckets in memory. */
  get size(): number {
    return this.#buckets().size
  }

  take(key: string, capacity: number): TokenGrant {
    const now = this.#clock.now()
    const bucket = this.#buckets().get(key)
    const deficit = bucket ? Math.max(0, bucket.deficit - Math.max(0, now - bucket.updatedAt) * capacity) : 0
    const newDeficit = deficit + this.#windowMs
    const surplus = capacity * this.#windowMs - newDeficit
    if (surplus < 0) {
      const [fullInMs, nextInMs] = [Math.ceil(deficit / capacity), Math.ceil(-surplus / capacity)]
      return { isGranted: false, remaining: 0, fullInMs, nextInMs }
    }
    if (!bucket) this.#evictStale(now)
    const fullInMs = Math.ceil(newDeficit / capacity)
    this.#buckets().set(key, { deficit: newDeficit, updatedAt: now }, { ttl: fullInMs })
    return { isGranted: true, remaining: Math.floor(surplus / this.#windowMs), fullInMs, nextInMs: 0 }
  }

  #evictStale(now: number): void {
    if (this.#buckets().size < this.#max || now < this.#sweepAt) return
    this.#buckets().purgeStale()
    this.#sweepAt = now + sweepIntervalMs
  }
}

/** Rate limit class of a route: sign-in, or all other routes. */
export type RateLimitClass = 'general' | 'signIn'

/** Prefixes of rate-limited paths. Routes below them return data, or could be used to guess credentials. */
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

/** Request to take a token from a rate limit. */
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
   * Takes a token, and adds the remaining limit to the response headers.
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
