import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { HeaderPairs } from '../../src/http/headers.ts'
import { MemoryBuckets, RateLimit, type RateLimitClass, rateLimitClassOf } from '../../src/http/rate-limit.ts'
import { TestClock } from '../harness/runtime.ts'

const windowMs = 60_000

function bucketsOf(options: { windowMs?: number; max?: number } = {}) {
  const clock = new TestClock()
  return { clock, buckets: new MemoryBuckets({ clock, windowMs, ...options }) }
}

const countGranted = (buckets: MemoryBuckets, key: string, capacity: number, times: number) =>
  Array.from({ length: times }, () => buckets.take(key, capacity).isGranted).filter(Boolean).length

describe('a bucket', () => {
  test('S8-08: counts down from its capacity, and then rejects requests', () => {
    const { buckets } = bucketsOf()
    const answers = Array.from({ length: 4 }, () => buckets.take('a', 3))
    expect(answers.map(({ isGranted }) => isGranted)).toEqual([true, true, true, false])
    expect(answers.map(({ remaining }) => remaining)).toEqual([2, 1, 0, 0])
    expect(answers.map(({ fullInMs }) => fullInMs)).toEqual([20_000, 40_000, 60_000, 60_000])
    expect(answers.map(({ nextInMs }) => nextInMs)).toEqual([0, 0, 0, 20_000])
  })

  test('S8-09: refills over time: one token at the reported time, and all after the window', () => {
    const { clock, buckets } = bucketsOf()
    expect(countGranted(buckets, 'a', 7, 100)).toBe(7)
    const { nextInMs } = buckets.take('a', 7)
    clock.advance(nextInMs - 1)
    expect(buckets.take('a', 7).isGranted).toBe(false)
    clock.advance(1)
    expect(countGranted(buckets, 'a', 7, 100)).toBe(1)
    clock.advance(windowMs)
    expect(countGranted(buckets, 'a', 7, 100)).toBe(7)
    clock.advance(windowMs * 1_000)
    expect(countGranted(buckets, 'a', 7, 100)).toBe(7)
  })

  test('a rejected request uses no token', () => {
    const { clock, buckets } = bucketsOf()
    countGranted(buckets, 'a', 2, 1_000)
    clock.advance(30_000)
    expect(countGranted(buckets, 'a', 2, 1_000)).toBe(1)
  })

  test('a clock that is set back neither fills nor blocks it', () => {
    const { clock, buckets } = bucketsOf()
    expect(countGranted(buckets, 'a', 2, 1)).toBe(1)
    clock.advance(-3_600_000)
    expect(countGranted(buckets, 'a', 2, 5)).toBe(1)
    clock.advance(30_000)
    expect(countGranted(buckets, 'a', 2, 5)).toBe(1)
  })

  const steps = fc.array(fc.record({ waitMs: fc.nat(5_000), key: fc.constantFrom('a', 'b', 'c') }), {
    maxLength: 200,
  })
  const sized = fc.record({
    capacity: fc.integer({ min: 1, max: 20 }),
    span: fc.integer({ min: 1_000, max: 20_000 }),
  })

  test('property S8-06: never grants more than the capacity and the refill in any period', () => {
    fc.assert(
      fc.property(sized, steps, ({ capacity, span }, taken) => {
        const { clock, buckets } = bucketsOf({ windowMs: span })
        const granted: number[] = []
        for (const { waitMs } of taken) {
          clock.advance(waitMs)
          if (buckets.take('a', capacity).isGranted) granted.push(clock.now())
        }
        for (let first = 0; first < granted.length; first++)
          for (let last = first; last < granted.length; last++) {
            const refill = ((granted[last]! - granted[first]!) * capacity) / span
            expect(last - first + 1).toBeLessThanOrEqual(capacity + refill)
          }
      }),
    )
  })

  test('property S8-09: one address does not affect another', () => {
    fc.assert(
      fc.property(sized, steps, ({ capacity, span }, taken) => {
        const [together, alone] = [bucketsOf({ windowMs: span }), bucketsOf({ windowMs: span })]
        for (const { waitMs, key } of taken) {
          together.clock.advance(waitMs)
          alone.clock.advance(waitMs)
          const answer = together.buckets.take(key, capacity)
          if (key === 'a') expect(answer).toEqual(alone.buckets.take(key, capacity))
        }
      }),
    )
  })

  test('property: the reported times until the next token and until full are exact', () => {
    fc.assert(
      fc.property(sized, steps, ({ capacity, span }, taken) => {
        const { clock, buckets } = bucketsOf({ windowMs: span })
        for (const { waitMs } of taken) {
          clock.advance(waitMs)
          const { isGranted, remaining, fullInMs, nextInMs } = buckets.take('a', capacity)
          expect(fullInMs).toBeGreaterThan(0)
          expect(fullInMs).toBeLessThanOrEqual(span)
          expect(remaining).toBeLessThan(capacity)
          expect(nextInMs > 0).toBe(!isGranted)
        }
        const { fullInMs } = buckets.take('a', capacity)
        clock.advance(fullInMs)
        expect(countGranted(buckets, 'a', capacity, capacity + 1)).toBe(capacity)
      }),
    )
  })
})

describe('many buckets', () => {
  test('S8-16: many addresses use a bounded number of buckets, and none is rejected', () => {
    const { clock, buckets } = bucketsOf()
    let most = 0
    for (let at = 0; at < 200_000; at++) {
      if (at % 10 === 0) clock.advance(1)
      if (!buckets.take(`10.${at >> 16}.${(at >> 8) & 255}.${at & 255}`, 600).isGranted)
        expect.fail(`address ${at} was refused`)
      if (at % 1_000 === 0) most = Math.max(most, buckets.size)
    }
    expect(most).toBeLessThanOrEqual(50_000)
    expect(most).toBeGreaterThan(40_000)
  })

  test('evicts full buckets first, so new ones do not reset an empty one', () => {
    const { clock, buckets } = bucketsOf({ max: 100 })
    expect(countGranted(buckets, 'drained', 60, 60)).toBe(60)
    for (let round = 0; round < 20; round++) {
      clock.advance(1_001)
      for (let at = 0; at < 90; at++) buckets.take(`${round}.${at}`, 60)
    }
    expect(buckets.size).toBeLessThanOrEqual(100)
    // It refilled for twenty seconds.
    expect(countGranted(buckets, 'drained', 60, 60)).toBe(20)
  })

  test('a request takes microseconds when the only bucket is full again', () => {
    const { clock, buckets } = bucketsOf()
    buckets.take('a', 600)
    const before = process.cpuUsage()
    for (let at = 0; at < 2_000; at++) {
      clock.advance(windowMs)
      expect(buckets.take('a', 600).remaining).toBe(599)
    }
    const { user, system } = process.cpuUsage(before)
    expect((user + system) / 2_000).toBeLessThan(100)
  })

  test('evicts the least recently used bucket if none is full', () => {
    const { buckets } = bucketsOf({ max: 3 })
    for (const key of ['a', 'b', 'c', 'a', 'd']) buckets.take(key, 10)
    expect(buckets.size).toBe(3)
    expect(buckets.take('a', 10).remaining).toBe(7)
    expect(buckets.take('b', 10).remaining).toBe(9)
  })
})

describe('the bucket of a request', () => {
  test.each<[string, RateLimitClass | undefined]>([
    ['/api/v1/workspaces', 'general'],
    ['/api/v1/openapi.json', 'general'],
    ['/api/v1/nowhere', 'general'],
    ['/auth/me', 'general'],
    ['/auth/config', 'general'],
    ['/auth/refresh', 'general'],
    ['/auth/logout', 'general'],
    ['/auth/login', 'signIn'],
    ['/auth/callback', 'signIn'],
    ['/auth/device/authorize', 'signIn'],
    ['/auth/device/token', 'signIn'],
    ['/auth/device/refresh', 'signIn'],
    ['/', undefined],
    ['/healthz', undefined],
    ['/readyz', undefined],
    ['/version', undefined],
    ['/docs', undefined],
    ['/error-codes', undefined],
  ])('S8-06 S8-07: %s uses the bucket %s', (path, rateLimitClass) => {
    expect(rateLimitClassOf(path)).toBe(rateLimitClass)
  })

  function limit(changed: { capacity?: number; directCapacity?: number; authCapacity?: number } = {}) {
    const { clock, buckets } = bucketsOf()
    const sizes = { capacity: 2, directCapacity: 2, authCapacity: 1, ...changed }
    const rate = new RateLimit({ windowMs, ...sizes }, buckets)
    const passes = (rateLimitClass: RateLimitClass, client: string, isForwarded = false) => {
      try {
        rate.take({ rateLimitClass, client, isForwarded }, [])
        return true
      } catch {
        return false
      }
    }
    return { clock, rate, passes }
  }

  test('sign-in and other requests use separate buckets', () => {
    const { passes } = limit()
    expect([passes('signIn', 'a'), passes('signIn', 'a'), passes('signIn', 'b')]).toEqual([true, false, true])
    expect([passes('general', 'a'), passes('general', 'a'), passes('general', 'a')]).toEqual([
      true,
      true,
      false,
    ])
  })

  test('remote clients behind a local proxy do not use the bucket of local clients', () => {
    const { passes } = limit({ capacity: 1, directCapacity: 3 })
    const forwarded = () => passes('general', '127.0.0.1', true)
    const direct = () => passes('general', '127.0.0.1')
    expect([forwarded(), forwarded()]).toEqual([true, false])
    expect([direct(), direct(), direct(), direct()]).toEqual([true, true, true, false])
  })

  test('a forwarding header gives no second bucket if both have the same capacity', () => {
    const { passes } = limit()
    const given = [passes('general', 'a'), passes('general', 'a', true), passes('general', 'a', true)]
    expect(given).toEqual([true, true, false])
  })

  test('S7.3-rate_limited: reports the remaining requests and the time to wait, in whole seconds', () => {
    const { clock, rate } = limit({ capacity: 2, directCapacity: 2 })
    const takeRequest = () => {
      const headers: HeaderPairs = []
      const refused = (() => {
        try {
          rate.take({ rateLimitClass: 'general', client: 'a', isForwarded: false }, headers)
          return undefined
        } catch (error) {
          return error
        }
      })()
      return { refused, headers: Object.fromEntries(headers) }
    }
    const expectedHeaders = (remaining: number, reset: number) => ({
      'x-ratelimit-limit': '2',
      'x-ratelimit-remaining': String(remaining),
      'x-ratelimit-reset': String(reset),
    })
    expect(takeRequest()).toEqual({ refused: undefined, headers: expectedHeaders(1, 30) })
    clock.advance(1)
    expect(takeRequest()).toEqual({ refused: undefined, headers: expectedHeaders(0, 60) })
    const { refused, headers: last } = takeRequest()
    expect(last).toEqual(expectedHeaders(0, 60))
    expect(refused).toMatchObject({
      code: 'rate_limited',
      status: 429,
      facts: { headers: { 'retry-after': '30' } },
    })
    clock.advance(29_998)
    expect(takeRequest().refused).toMatchObject({ facts: { headers: { 'retry-after': '1' } } })
    clock.advance(1)
    expect(takeRequest().refused).toBeUndefined()
  })
})
