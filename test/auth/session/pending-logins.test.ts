import { describe, expect, test } from 'vitest'
import { createPendingLogins, type PendingLogin } from '../../../src/auth/session/pending-logins.ts'
import { TestClock } from '../../harness/runtime.ts'

const minuteMs = 60_000
const one = '192.0.2.1'

function login(codeVerifier: string): PendingLogin {
  return {
    codeVerifier,
    nonce: 'nonce',
    redirectUri: 'http://localhost/auth/callback',
    redirectAfter: '/',
    browserHash: Buffer.alloc(32),
  }
}

describe('pending logins', () => {
  test('S3-09 S5.7-05: are taken once', async () => {
    const pending = createPendingLogins(new TestClock())
    await pending.put('state', login('v'), one)
    expect(await pending.take('other')).toBeUndefined()
    expect(await pending.take('state')).toEqual(login('v'))
    expect(await pending.take('state')).toBeUndefined()
  })

  test('remain after a lookup', async () => {
    const clock = new TestClock()
    const pending = createPendingLogins(clock)
    await pending.put('state', login('v'), one)
    expect(await pending.find('other')).toBeUndefined()
    expect(await pending.find('state')).toEqual(login('v'))
    clock.advance(10 * minuteMs + 1)
    expect(await pending.find('state')).toBeUndefined()
  })

  test('S3-07 S5.7-03 S8-11: expire after ten minutes', async () => {
    const clock = new TestClock()
    const pending = createPendingLogins(clock)
    await pending.put('a', login('a'), one)
    await pending.put('b', login('b'), one)
    clock.advance(10 * minuteMs)
    expect(await pending.take('a')).toEqual(login('a'))
    clock.advance(1)
    expect(await pending.take('b')).toBeUndefined()
  })

  test('are limited to 4,096; the oldest of an address is replaced by its newest', async () => {
    const pending = createPendingLogins(new TestClock())
    for (let at = 0; at <= 4_096; at++) await pending.put(`state ${at}`, login(String(at)), one)
    expect(await pending.take('state 0')).toBeUndefined()
    expect(await pending.take('state 1')).toEqual(login('1'))
    expect(await pending.take('state 4096')).toEqual(login('4096'))
  })

  test.each([1, 20, 1_000])(
    'of other addresses are kept during a flood from %i addresses',
    async addresses => {
      const pending = createPendingLogins(new TestClock())
      await pending.put('mine', login('mine'), one)
      await pending.put('mine too', login('mine too'), one)
      for (let at = 0; at < 20_000; at++)
        await pending.put(`state ${at}`, login(String(at)), `198.51.100.${at % addresses}`)
      expect(await pending.take('mine')).toEqual(login('mine'))
      expect(await pending.take('mine too')).toEqual(login('mine too'))
      expect(await pending.take('state 15903')).toBeUndefined()
      expect(await pending.take('state 19999')).toEqual(login('19999'))
    },
  )

  test('that were taken or have expired do not count toward the limit', async () => {
    const clock = new TestClock()
    const pending = createPendingLogins(clock)
    for (let at = 0; at < 4_000; at++) await pending.put(`old ${at}`, login('old'), 'a')
    for (let at = 0; at < 2_000; at++) await pending.take(`old ${at}`)
    clock.advance(10 * minuteMs + 1)
    for (let at = 0; at < 2_048; at++) await pending.put(`a ${at}`, login('a'), 'a')
    for (let at = 0; at < 2_048; at++) await pending.put(`b ${at}`, login('b'), 'b')
    expect(await pending.take('a 0')).toEqual(login('a'))
    await pending.put('b 2048', login('b'), 'b')
    await pending.put('b 2049', login('b'), 'b')
    expect(await pending.take('b 0')).toBeUndefined()
    expect(await pending.take('a 1')).toEqual(login('a'))
  })
})
