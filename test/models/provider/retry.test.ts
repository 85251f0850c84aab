import { describe, expect, test, vi } from 'vitest'
import { TimedOut } from '../../../src/base/deadline.ts'
import { ErrorResponse } from '../../../src/models/provider/exchange.ts'
import { ProviderFailure } from '../../../src/models/provider/provider-failure.ts'
import { withRetries } from '../../../src/models/provider/retry.ts'

const { signal } = new AbortController()

/** Returns the number of attempts of a request whose attempts all fail. */
async function attemptsOf(error: Error, retriesMax = 1): Promise<number> {
  const attempt = vi.fn(() => Promise.reject(error))
  await expect(withRetries(attempt, { retriesMax, signal })).rejects.toBe(error)
  return attempt.mock.calls.length
}

const response = (status: number, said = {}, pauseMs: number | undefined = 0) =>
  new ErrorResponse(status, said, pauseMs, '')

describe('a request', () => {
  test.each([408, 409, 429, 500, 503, 529])('is repeated after status %i', async status => {
    expect(await attemptsOf(response(status))).toBe(2)
  })

  test.each([302, 400, 401, 404, 413, 422])('is not repeated after status %i', async status => {
    expect(await attemptsOf(response(status))).toBe(1)
  })

  test('is not repeated after a 429 that asks for payment', async () => {
    expect(await attemptsOf(response(429, { code: 'insufficient_quota' }))).toBe(1)
  })

  test('is not repeated if the provider requests a pause of more than 20 seconds', async () => {
    expect(await attemptsOf(response(503, {}, 20_001))).toBe(1)
  })

  test('is not repeated after a permanent failure', async () => {
    expect(await attemptsOf(new ProviderFailure('sent a response that cannot be read'))).toBe(1)
  })

  test('is repeated up to the allowed number of attempts', async () => {
    expect(await attemptsOf(response(503), 3)).toBe(4)
  })

  test.each([
    ['time-out', new TimedOut(100)],
    ['failed connection', new Error('socket hang up')],
  ])('is repeated after a %s, half a second later', async (_, error) => {
    const startedAt = performance.now()
    expect(await attemptsOf(error)).toBe(2)
    expect(performance.now() - startedAt).toBeGreaterThan(370)
  })
})
