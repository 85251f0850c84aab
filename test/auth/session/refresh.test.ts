import { describe, expect, test } from 'vitest'
import type { RunningProvider } from '../../harness/identity-provider.ts'
import type { TestResponse } from '../../harness/runtime.ts'
import {
  type Browser,
  codeOf,
  interceptProvider,
  OffsetClock,
  openSignInFixture,
  siteOrigin,
} from './sign-in-fixture.ts'

const tokenPath = '/token'
const cleared = 'wb_session=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax'

async function me(browser: Browser): Promise<TestResponse> {
  return browser.send('GET /auth/me')
}

/** Returns how many times a refresh token was used. */
function countRefreshes({ requests }: RunningProvider): number {
  return requests.filter(({ form }) => form.get('grant_type') === 'refresh_token').length
}

/** Creates a browser with the cookies of another one. */
function openTab(
  browser: Browser,
  send: (cookie: string) => Promise<TestResponse>,
): () => Promise<TestResponse> {
  const { cookies } = browser
  return () => send(cookies)
}

describe('session refresh', () => {
  test('S3-11 S4.3-09 S5.7-17: sets a new cookie, and returns the expiry of the new token', async () => {
    const { provider, browser } = await openSignInFixture()
    const alice = browser()
    await alice.signIn()
    const before = alice.cookies
    const answer = await alice.send('POST /auth/refresh')
    expect(answer.status).toBe(200)
    expect(answer.body).toEqual({ ok: true, expiresAt: expect.any(Number) })
    expect(Math.abs(Number(answer.body.expiresAt) - Date.now() / 1000 - 300)).toBeLessThan(10)
    expect(answer.headers.get('cache-control')).toBe('no-store')
    expect(answer.headers.getSetCookie()).toEqual([
      expect.stringMatching(/^wb_session=v2\.[\w.-]+; Path=\/; Max-Age=300; HttpOnly; SameSite=Lax$/),
    ])
    expect(alice.cookies).not.toBe(before)
    expect((await me(alice)).body).toMatchObject({
      id: 'alice',
      canRefresh: true,
      expiresAt: answer.body.expiresAt,
    })
    expect(countRefreshes(provider)).toBe(1)
    expect((await alice.send('POST /auth/refresh')).status).toBe(200)
    expect(countRefreshes(provider)).toBe(2)
  })

  test('keeps concurrent tabs and a later tab signed in', async () => {
    const clock = new OffsetClock()
    const { provider, opened, browser } = await openSignInFixture({ clock })
    const alice = browser()
    await alice.signIn()
    const old = openTab(alice, cookie =>
      opened.send('POST /auth/refresh', undefined, { cookie, origin: siteOrigin }),
    )
    const answers: TestResponse[] = await Promise.all([old(), old(), old()])
    clock.offsetMs = 20_000
    answers.push(await old())
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200])
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1)
    expect(countRefreshes(provider)).toBe(1)
    for (const answer of answers) {
      const tab = browser()
      tab.jar.storeCookies(new URL(siteOrigin), answer.headers)
      expect((await me(tab)).body.id).toBe('alice')
    }
    const last = browser()
    last.jar.storeCookies(new URL(siteOrigin), answers[3]!.headers)
    expect((await last.send('POST /auth/refresh')).status).toBe(200)
    answers.push(await old())
    const late = browser()
    late.jar.storeCookies(new URL(siteOrigin), answers[4]!.headers)
    clock.offsetMs = 60_000
    expect((await late.send('POST /auth/refresh')).status).toBe(200)
    expect(countRefreshes(provider)).toBe(3)
  })

  test('rejects the old cookie after that, because its refresh token was used', async () => {
    const clock = new OffsetClock()
    const { opened, browser } = await openSignInFixture({ clock })
    const alice = browser()
    await alice.signIn()
    const old = openTab(alice, cookie => opened.send('POST /auth/refresh', undefined, { cookie }))
    expect((await old()).status).toBe(200)
    clock.offsetMs = 31_000
    const answer = await old()
    expect([answer.status, codeOf(answer)]).toEqual([401, 'refresh_failed'])
  })

  test('S3-12 S4.3-10: fails with no_refresh_token without a valid session cookie', async () => {
    const { opened } = await openSignInFixture()
    for (const cookie of ['', 'wb_session=v2.x.y.z', 'other=1']) {
      const answer = await opened.send('POST /auth/refresh', undefined, cookie ? { cookie } : {})
      expect([answer.status, codeOf(answer)]).toEqual([401, 'no_refresh_token'])
      expect(answer.headers.getSetCookie()).toEqual([cleared])
      expect(answer.headers.get('cache-control')).toBe('no-store')
    }
  })

  test('S3-13 S5.7-21 S2.5-09 S2.6-09: fails and clears the cookie if the session has no refresh token', async () => {
    const { provider, browser } = await openSignInFixture({ provider: { refresh: false } })
    const alice = browser()
    await alice.signIn()
    expect((await me(alice)).body).toMatchObject({ id: 'alice', canRefresh: false })
    const answer = await alice.send('POST /auth/refresh')
    expect([answer.status, codeOf(answer)]).toEqual([401, 'no_refresh_token'])
    expect(answer.headers.getSetCookie()).toEqual([cleared])
    expect(alice.cookies).toBe('')
    expect(countRefreshes(provider)).toBe(0)
  })

  test('S3-14 S4.3-11: ends the session if the provider rejects the refresh token', async () => {
    const { provider, browser } = await openSignInFixture()
    const alice = browser()
    await alice.signIn()
    interceptProvider(provider, ({ path }) =>
      path === tokenPath
        ? { status: 400, body: '{"error":"invalid_grant","error_description":"gone"}' }
        : undefined,
    )
    const answer = await alice.send('POST /auth/refresh')
    expect([answer.status, codeOf(answer)]).toEqual([401, 'refresh_failed'])
    expect(answer.text).not.toMatch(/gone|invalid_grant/)
    expect(answer.headers.getSetCookie()).toEqual([cleared])
    expect(alice.cookies).toBe('')
  })

  test('S3-15 S4.3-12: ends the session if the new token is not valid', async () => {
    const { provider, browser } = await openSignInFixture()
    for (const claims of [{ aud: 'https://someone-else.example' }, { sub: 'mallory' }]) {
      const alice = browser()
      await alice.signIn()
      const token = await provider.sign(claims)
      interceptProvider(provider, ({ path }) => (path === tokenPath ? tokenResponse(token) : undefined))
      const answer = await alice.send('POST /auth/refresh')
      expect([answer.status, codeOf(answer)]).toEqual([401, 'token_validation_failed'])
      expect(answer.headers.getSetCookie()).toEqual([cleared])
      provider.intercept = () => undefined
    }
  })

  test('keeps the old refresh token if the provider issues no new one', async () => {
    const { provider, browser } = await openSignInFixture()
    const alice = browser()
    await alice.signIn()
    const tokens = [await provider.sign({ jti: '1' }), await provider.sign({ jti: '2' })]
    interceptProvider(provider, ({ path }) =>
      path === tokenPath ? tokenResponse(tokens.shift()!) : undefined,
    )
    const spent = () => provider.requests.filter(({ form }) => form.has('refresh_token'))
    expect((await alice.send('POST /auth/refresh')).status).toBe(200)
    expect((await me(alice)).body.canRefresh).toBe(true)
    expect((await alice.send('POST /auth/refresh')).status).toBe(200)
    expect(new Set(spent().map(({ form }) => form.get('refresh_token'))).size).toBe(1)
    expect(spent()).toHaveLength(2)
  })

  test.each([
    [{ expires_in: 77 }, 77],
    [{ expires_in: 86_400 }, 86_400],
    [{}, 3_600],
  ])(
    'with a provider response of %j, sets a cookie that lasts %i seconds [S2.5-05]',
    async (said, seconds) => {
      const { provider, browser } = await openSignInFixture()
      const alice = browser()
      await alice.signIn()
      const token = await provider.sign()
      interceptProvider(provider, ({ path }) => (path === tokenPath ? tokenResponse(token, said) : undefined))
      const answer = await alice.send('POST /auth/refresh')
      expect(answer.headers.getSetCookie()[0]).toContain(`; Max-Age=${seconds};`)
    },
  )

  test('keeps the session if the provider is down', async () => {
    const { provider, browser } = await openSignInFixture()
    const alice = browser()
    await alice.signIn()
    const { cookies } = alice
    await provider.stop()
    const down = await alice.send('POST /auth/refresh')
    await provider.restart()
    interceptProvider(provider, ({ path }) => (path === tokenPath ? { status: 502 } : undefined))
    const broken = await alice.send('POST /auth/refresh')
    for (const answer of [down, broken]) {
      expect([answer.status, codeOf(answer)]).toEqual([503, 'identity_provider_unavailable'])
      expect(answer.headers.getSetCookie()).toEqual([])
    }
    expect(alice.cookies).toBe(cookies)
    expect((await me(alice)).status).toBe(200)
    provider.intercept = () => undefined
    expect((await alice.send('POST /auth/refresh')).status).toBe(200)
  })

  test('keeps new tokens until the keys to verify them can be loaded, because the refresh token is used up', async () => {
    const clock = new OffsetClock()
    const { provider, browser } = await openSignInFixture({ clock })
    const alice = browser()
    await alice.signIn()
    expect((await me(alice)).status).toBe(200)
    await provider.rotateKeys()
    interceptProvider(provider, ({ path }) => (path === '/jwks' ? { status: 500 } : undefined))
    clock.offsetMs = 60_000
    const answer = await alice.send('POST /auth/refresh')
    expect([answer.status, codeOf(answer)]).toEqual([503, 'identity_provider_unavailable'])
    expect(answer.headers.getSetCookie()).toEqual([])
    provider.intercept = () => undefined
    clock.offsetMs = 120_000
    expect((await alice.send('POST /auth/refresh')).status).toBe(200)
    expect(countRefreshes(provider)).toBe(1)
    expect((await me(alice)).body.id).toBe('alice')
  })

  test('reports a session that has become too large, and the old session continues until it expires', async () => {
    const { provider, browser } = await openSignInFixture()
    const alice = browser()
    await alice.signIn()
    const token = await provider.sign({ padding: 'x'.repeat(12_000) })
    interceptProvider(provider, ({ path }) => (path === tokenPath ? tokenResponse(token) : undefined))
    const answer = await alice.send('POST /auth/refresh')
    expect([answer.status, codeOf(answer)]).toEqual([502, 'session_too_large'])
    expect(answer.headers.getSetCookie()).toEqual([])
    expect((await me(alice)).status).toBe(200)
  })
})

function tokenResponse(token: string, more: object = { expires_in: 300 }) {
  return { status: 200, body: JSON.stringify({ access_token: token, token_type: 'Bearer', ...more }) }
}
