import { describe, expect, test } from 'vitest'
import { pollForTokens } from '../../src/cli/sign-in/device-login.ts'
import type { Client } from '../../src/client/client.ts'
import { Unreachable } from '../../src/client/unreachable.ts'
import { type ErrorCode, WbError } from '../../src/contract/errors.ts'

const started = {
  deviceCode: 'd',
  userCode: 'U',
  verificationUri: 'https://id.example/device',
  verificationUriComplete: undefined,
  intervalMs: 5_000,
  expiresAt: 60_000,
}
const tokens = { access_token: 'a', token_type: 'Bearer' }
const away = new Unreachable('no runtime answers', '')

/** Poll a runtime that answers so, one after the other; waits take no time, and are told. */
async function poll(answers: readonly (ErrorCode | Error | typeof tokens)[]) {
  let nowMs = 0
  const waits: number[] = []
  const troubles: (string | undefined)[] = []
  const left = [...answers]
  const client = {
    async call() {
      const answer = left.shift() ?? 'authorization_pending'
      if (answer instanceof Error) throw answer
      if (typeof answer === 'string') throw new WbError(answer, `told: ${answer}`)
      return answer
    },
  } as unknown as Client
  const outcome = await pollForTokens(started, {
    client,
    clock: { now: () => nowMs, after: () => () => {} },
    signal: new AbortController().signal,
    onProblemChange: why => troubles.push(why),
    pause: async ms => {
      waits.push(ms)
      nowMs += ms
    },
  }).catch((error: Error) => error)
  return { outcome, waits, troubles }
}

describe('S5.8-01: a device asks', () => {
  test('at the interval, from the start, until the person has approved', async () => {
    const { outcome, waits } = await poll(['authorization_pending', 'authorization_pending', tokens])
    expect([outcome, waits]).toEqual([tokens, [5_000, 5_000, 5_000]])
  })

  test('five seconds slower each time that it is told to', async () => {
    const { outcome, waits } = await poll(['slow_down', 'authorization_pending', 'slow_down', tokens])
    expect([outcome, waits]).toEqual([tokens, [5_000, 10_000, 10_000, 15_000]])
  })

  test('on while nobody answers, and says so until somebody does', async () => {
    const busy = new WbError('identity_provider_unavailable', 'busy')
    const { outcome, troubles } = await poll([away, busy, 'authorization_pending', tokens])
    expect([outcome, troubles]).toEqual([tokens, ['no runtime answers', 'busy', undefined, undefined]])
  })

  test('not longer than the code is good', async () => {
    const { outcome, waits } = await poll([])
    expect(outcome).toMatchObject({ code: 'expired_token' })
    expect(waits.length).toBe(12)
  })

  test.each(['access_denied', 'expired_token', 'invalid_grant', 'device_token_failed'] as const)(
    'not after %s',
    async code => {
      const { outcome, waits } = await poll([code])
      expect([outcome, waits.length]).toEqual([expect.objectContaining({ code }), 1])
    },
  )
})
