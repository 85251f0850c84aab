import { describe, expect, test } from 'vitest'
import { parseTokens, type StoredTokens, TokenStore } from '../../src/cli/credentials/token-store.ts'
import { Unreachable } from '../../src/client/unreachable.ts'
import type { DeviceTokens } from '../../src/contract/auth.ts'
import { WbError } from '../../src/contract/errors.ts'

const minute = 60_000
const next: DeviceTokens = { access_token: 'new', token_type: 'Bearer', expires_in: 600, refresh_token: 'r2' }

/** Creates a stored login at a point in time, with a scripted answer to a refresh. */
function createStoredLogin(tokens: StoredTokens | null, nowMs: number, answer: DeviceTokens | Error = next) {
  let stored = tokens && JSON.stringify(tokens)
  const requests: string[] = []
  const login = new TokenStore({
    keychain: {
      getPassword: async () => stored,
      setPassword: async (_service, _account, text) => {
        stored = text
      },
    },
    account: 'https://wb.example 1',
    loginCommand: 'wb login https://wb.example',
    clock: { now: () => nowMs, after: () => () => {} },
    withLock: work => work(),
    async renew(refreshToken) {
      requests.push(refreshToken)
      if (answer instanceof Error) throw answer
      return answer
    },
  })
  return {
    login,
    requests,
    stored: () => JSON.parse(stored ?? 'null') as StoredTokens,
    store(other: StoredTokens) {
      stored = JSON.stringify(other)
    },
  }
}

const lasting = { token: 'old', refreshToken: 'r1', expiresAt: 10 * minute, renewAt: 9 * minute }

describe('the tokens of a login', () => {
  test('are sent unchanged while valid, and refreshed a minute before they expire', async () => {
    const early = createStoredLogin(lasting, 8 * minute)
    expect([await early.login.token(), early.requests]).toEqual(['old', []])
    const late = createStoredLogin(lasting, 9 * minute)
    expect([await late.login.token(), late.requests]).toEqual(['new', ['r1']])
    expect(late.stored()).toEqual({
      token: 'new',
      refreshToken: 'r2',
      expiresAt: 19 * minute,
      renewAt: 18 * minute,
    })
  })

  test('keep their refresh token if the provider sends no new one', async () => {
    const { login, stored } = createStoredLogin(lasting, 9 * minute, { ...next, refresh_token: undefined })
    expect([await login.token(), stored().refreshToken]).toEqual(['new', 'r1'])
  })

  test('are refreshed once when the runtime rejects them', async () => {
    const { login, requests } = createStoredLogin(lasting, minute)
    expect([await login.token(), await login.token('old'), await login.token('old'), requests]).toEqual([
      'old',
      'new',
      'new',
      ['r1'],
    ])
  })

  test('are not refreshed if another process already did it', async () => {
    const { login, requests, store } = createStoredLogin(lasting, minute)
    await login.token()
    store({ ...lasting, token: 'quicker' })
    expect([await login.token('old'), requests]).toEqual(['quicker', []])
  })

  test('remain in use and stored until they expire while the provider is down', async () => {
    const away = new WbError('identity_provider_unavailable', 'away')
    expect(await createStoredLogin(lasting, 9 * minute, away).login.token()).toBe('old')
    const over = createStoredLogin(lasting, 11 * minute, away)
    await expect(over.login.token()).rejects.toBe(away)
    expect(await over.login.tokens()).toEqual(lasting)
  })

  test.each(['refresh_failed', 'invalid_grant', 'token_validation_failed'] as const)(
    'have expired when the runtime answers %s, and the error suggests how to sign in',
    async code => {
      const { login, stored } = createStoredLogin(
        lasting,
        9 * minute,
        new WbError(code, 'the provider refuses'),
      )
      await expect(login.token()).rejects.toMatchObject({
        code: 'unauthorized',
        message: 'the login has ended: the provider refuses',
        facts: { next: ['wb login https://wb.example'] },
      })
      expect(stored()).toEqual(lasting)
    },
  )

  test('are not replaced by an invalid response', async () => {
    for (const answer of [{}, { access_token: 'a\nb' }, { access_token: 'a', expires_in: 'soon' }]) {
      const { login, stored } = createStoredLogin(lasting, 9 * minute, answer as DeviceTokens)
      await expect(login.token()).rejects.toBeInstanceOf(Unreachable)
      expect(stored()).toEqual(lasting)
    }
  })

  test('expire without a refresh token, and a missing entry is reported', async () => {
    const brief = { token: 'old', expiresAt: minute }
    expect(await createStoredLogin(brief, 0).login.token()).toBe('old')
    await expect(createStoredLogin(brief, minute).login.token()).rejects.toMatchObject({
      code: 'unauthorized',
    })
    await expect(createStoredLogin(null, 0).login.token()).rejects.toMatchObject({
      message: 'the keychain no longer contains this login',
    })
  })

  test('are refreshed in the last quarter of a short lifetime, and never by time without an expiry', () => {
    expect(parseTokens({ ...next, expires_in: 20 }, 0)).toMatchObject({ expiresAt: 20_000, renewAt: 15_000 })
    expect(parseTokens({ ...next, expires_in: undefined }, 0)).toEqual({ token: 'new', refreshToken: 'r2' })
    expect(parseTokens({ ...next, expires_in: 1e300 }, 0).expiresAt).toBe(315_360_000_000)
  })
})
