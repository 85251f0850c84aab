import { expect, test } from 'vitest'
import { TimedOut, withTimeout } from '../../src/base/deadline.ts'
import { TestClock } from '../harness/runtime.ts'

test('work that finishes in time returns its result, and its signal does not fire', async () => {
  const clock = new TestClock()
  let signal!: AbortSignal
  const work = withTimeout(clock, 1_000, async own => {
    signal = own
    return 'done'
  })
  await expect(work).resolves.toBe('done')
  clock.advance(1_000)
  expect(signal.aborted).toBe(false)
})

test('work that takes too long is aborted, and its result is ignored', async () => {
  const clock = new TestClock()
  let signal!: AbortSignal
  const work = withTimeout(clock, 1_000, own => {
    signal = own
    return new Promise<never>((_, fail) => own.addEventListener('abort', () => fail(new Error('stopped'))))
  })
  clock.advance(1_000)
  await expect(work).rejects.toThrow(TimedOut)
  await expect(work).rejects.toThrow('no response within 1000 ms')
  expect(signal.reason).toBeInstanceOf(TimedOut)
})

test('the error of failed work is passed on', async () => {
  const work = withTimeout(new TestClock(), 1_000, () => Promise.reject(new Error('broken')))
  await expect(work).rejects.toThrow('broken')
})

test.each(['before', 'meanwhile'])(
  'work is aborted if its caller disconnects %s, and its result is returned',
  async when => {
    const caller = new AbortController()
    if (when === 'before') caller.abort('left')
    const work = withTimeout(
      new TestClock(),
      1_000,
      async own => {
        caller.abort('left')
        return own.reason
      },
      caller.signal,
    )
    await expect(work).resolves.toBe('left')
  },
)
