import { describe, expect, test } from 'vitest'
import { type PendingLogin, pendingLogins } from '../../../src/auth/session/pending-logins.ts'
import { TestClock } from '../../harness/runtime.ts'

const minuteMs = 60_000

function login(codeVerifier: string): PendingLogin {
  return {
    codeVerifier,
    nonce: 'nonce',
    redirectUri: 'http://localhost/auth/callback',
    redirectAfter: '/',
    browserHash: Buffer.alloc(32),
  }
}

describe('logins that wait for the provider', () => {
  test('S3-09 S5.7-05: are taken once', async () => {
    const pending = pendingLogins(new TestClock())
    await pending.put('state', login('v'))
    expect(await pending.take('other')).toBeUndefined()
    expect(await pending.take('state')).toEqual(login('v'))
    expect(await pending.take('state')).toBeUndefined()
  })

  test('S3-07 S5.7-03 S8-11: wait for ten minutes and no longer', async () => {
    const clock = new TestClock()
    const pending = pendingLogins(clock)
    await pending.put('a', login('a'))
    await pending.put('b', login('b'))
    clock.advance(10 * minuteMs)
    expect(await pending.take('a')).toEqual(login('a'))
    clock.advance(1)
    expect(await pending.take('b')).toBeUndefined()
  })

  test('are at most 1,024, and the oldest give way', async () => {
    const pending = pendingLogins(new TestClock())
    for (let at = 0; at <= 1_024; at++) await pending.put(`state ${at}`, login(String(at)))
    expect(await pending.take('state 0')).toBeUndefined()
    expect(await pending.take('state 1')).toEqual(login('1'))
    expect(await pending.take('state 1024')).toEqual(login('1024'))
  })
})
