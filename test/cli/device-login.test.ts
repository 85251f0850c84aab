import { describe, expect, test } from 'vitest'
import { pollForTokens } from '../../src/cli/sign-in/device-login.ts'
import type { Client } from '../../src/client/client.ts'
import { Unreachable } from '../../src/client/unreachable.ts'
import { type ErrorCode, WbError } from '../../src/contract/errors.ts'

const authorization = {
  deviceCode: 'd',
  userCode: 'U',
  verificationUri: 'https://id.example/device',
  verificationUriComplete: undefined,
  intervalMs: 5_000,
  expiresAt: 60_000,
}
const tokens = { access_token: 'a', token_type: 'Bearer' }
const unreachable = new Unreachable('no runtime answers', '')

/** Polls a runtime with scripted answers. Waits take no time and are recorded. */
async function poll(answers: readonly (ErrorCode | Error | typeof tokens)[]) {
  let nowMs = 0
  const waits: number[] = []
  const troubles: (string | undefined)[] = []
  const remaining = [...answers]
  const client = {
    async call() {
      const answer = remaining.shift() ?? 'authorization_pending'
      if (answer instanceof Error) throw answer
      if (typeof answer === 'string') throw new WbError(answer, `told: ${answer}`)
      return answer
    },
  } as unknown as Client
  const outcome = await pollForTokens(authorization, {
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

describe('S5.8-01: device login polling', () => {
  test('polls at the interval, from the start, until the user has approved', async () => {
    const { outcome, waits } = await poll(['authorization_pending', 'authorization_pending', tokens])
    expect([outcome, waits]).toEqual([tokens, [5_000, 5_000, 5_000]])
  })

  test('waits five seconds longer after each slow_down', async () => {
    const { outcome, waits } = await poll(['slow_down', 'authorization_pending', 'slow_down', tokens])
    expect([outcome, waits]).toEqual([tokens, [5_000, 10_000, 10_000, 15_000]])
  })

  test('continues while the runtime does not respond, and reports the outage once', async () => {
    const busy = new WbError('identity_provider_unavailable', 'busy')
    const { outcome, troubles } = await poll([unreachable, busy, 'authorization_pending', tokens])
    expect([outcome, troubles]).toEqual([tokens, ['no runtime answers', 'busy', undefined, undefined]])
  })

  test('stops when the code expires', async () => {
    const { outcome, waits } = await poll([])
    expect(outcome).toMatchObject({ code: 'expired_token' })
    expect(waits.length).toBe(12)
  })

  test.each(['access_denied', 'expired_token', 'invalid_grant', 'device_token_failed'] as const)(
    'stops after %s',
    async code => {
      const { outcome, waits } = await poll([code])
      expect([outcome, waits.length]).toEqual([expect.objectContaining({ code }), 1])
    },
  )
})
