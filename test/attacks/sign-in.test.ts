import { describe, expect, test } from 'vitest'
import {
  type Browser,
  codeOf,
  openSignInFixture,
  type SignInFixture,
  siteOrigin,
} from '../auth/session/sign-in-fixture.ts'
import { browse } from '../harness/identity-provider.ts'

/**
 * Attacks that try to take over a session or to redirect a browser to another site.
 *
 * @see docs/security.md#rule-3, docs/security.md#rule-12, docs/security.md#rule-13
 */

async function expectInvalidState({ opened }: SignInFixture, line: string, cookie: string): Promise<void> {
  const answer = await opened.send(line, undefined, cookie ? { cookie } : {})
  expect([answer.status, codeOf(answer)], answer.text).toEqual([400, 'invalid_state'])
  expect(answer.headers.getSetCookie()).toEqual([])
}

/** Returns the cookies that a browser sends to the callback. */
function callbackCookies({ jar }: Browser): string {
  return jar.header(new URL('/auth/callback', siteOrigin))
}

describe('a login belongs to the browser that started it [security rule 12]', () => {
  test('S5.7-05: a link with the code of another user does not sign in a browser', async () => {
    const staged = await openSignInFixture()
    const [mallory, victim] = [staged.browser(), staged.browser()]
    const link = await mallory.returnFromProvider({ login: 'mallory' })
    await expectInvalidState(staged, link, '')
    await victim.returnFromProvider()
    await expectInvalidState(
      staged,
      await mallory.returnFromProvider({ login: 'mallory' }),
      callbackCookies(victim),
    )
  })

  test('S5.7-05: the state of one browser does not work with the cookie of another', async () => {
    const staged = await openSignInFixture()
    const [one, other] = [staged.browser(), staged.browser()]
    const lines = [await one.returnFromProvider(), await other.returnFromProvider()] as const
    const cookies = [callbackCookies(one), callbackCookies(other)] as const
    await expectInvalidState(staged, lines[0], cookies[1])
    await expectInvalidState(staged, lines[1], cookies[0])
  })

  test('S5.7-05: the cookie name of one browser does not work with the cookie value of another', async () => {
    const staged = await openSignInFixture()
    const [one, other] = [staged.browser(), staged.browser()]
    const lines = [await one.returnFromProvider(), await other.returnFromProvider()] as const
    const [name] = callbackCookies(one).split('=')
    const [, value] = callbackCookies(other).split('=')
    await expectInvalidState(staged, lines[0], `${name}=${value}`)
    await expectInvalidState(staged, lines[1], callbackCookies(other).slice(0, -1))
  })

  test('S5.7-05: a duplicate binding cookie is rejected', async () => {
    const staged = await openSignInFixture()
    const alice = staged.browser()
    const line = await alice.returnFromProvider()
    const cookie = callbackCookies(alice)
    await expectInvalidState(staged, line, `${cookie}; ${cookie}`)
  })

  test('S5.7-06: the code of one login does not work with the state of another in one browser', async () => {
    const staged = await openSignInFixture()
    const alice = staged.browser()
    const [one, other] = [await alice.returnFromProvider(), await alice.returnFromProvider()]
    const code = new URL(one.slice(4), siteOrigin).searchParams.get('code')!
    const answer = await alice.send(other.replace(/code=[^&]*/, `code=${code}`))
    expect([answer.status, codeOf(answer)]).toEqual([502, 'token_exchange_failed'])
    expect(answer.headers.getSetCookie()).toEqual([])
  })

  test('a duplicate callback parameter is rejected', async () => {
    const staged = await openSignInFixture()
    const alice = staged.browser()
    const line = await alice.returnFromProvider()
    const answer = await alice.send(`${line}&state=x`)
    expect(answer.status).toBe(400)
    expect(answer.headers.getSetCookie()).toEqual([])
  })

  test('a callback with another issuer than the provider is rejected', async () => {
    const staged = await openSignInFixture()
    const alice = staged.browser()
    const line = await alice.returnFromProvider()
    const answer = await alice.send(`${line.replace(/&iss=[^&]*/, '')}&iss=https%3A%2F%2Fevil.example`)
    expect(answer.status).toBe(502)
    expect(answer.headers.getSetCookie()).toEqual([])
  })

  test.each([
    'https://evil.example',
    '//evil.example',
    '/\\evil.example',
    '/%2f%2fevil.example',
    '/%5cevil.example',
    '/%09/evil.example',
    '/.//evil.example',
    'javascript:alert(1)',
  ])('S5.7-09 S5.7-10 S5.7-11: %s redirects to no other site', async after => {
    const { browser } = await openSignInFixture()
    const answer = await browser().signIn({ after })
    expect([answer.status, answer.headers.get('location')]).toEqual([302, '/'])
  })
})

describe('session cookies are complete, for one site, and unique [security rule 12]', () => {
  test('S2.5-07: a cookie that is truncated or changed at any byte is not a session, and causes no internal error', async () => {
    const { opened, browser } = await openSignInFixture()
    const alice = browser()
    await alice.signIn()
    const cookie = alice.cookies
    const from = cookie.indexOf('=') + 1
    expect((await opened.send('GET /auth/me', undefined, { cookie })).status).toBe(200)
    for (let at = from; at < cookie.length; at++) {
      const other = cookie[at] === 'A' ? 'B' : 'A'
      const changed = cookie.slice(0, at) + other + cookie.slice(at + 1)
      for (const sent of [changed, cookie.slice(0, at)]) {
        const answer = await opened.send('GET /auth/me', undefined, { cookie: sent })
        expect([answer.status, codeOf(answer)], sent).toEqual([401, 'unauthorized'])
      }
    }
  })

  test('S2.5-07: duplicate session cookies are rejected in any order', async () => {
    const { opened, browser } = await openSignInFixture()
    const [alice, mallory] = [browser(), browser()]
    await alice.signIn()
    await mallory.signIn({ login: 'mallory' })
    for (const cookie of [
      `${mallory.cookies}; ${alice.cookies}`,
      `${alice.cookies}; ${mallory.cookies}`,
      `${alice.cookies}; wb_session=`,
      `${alice.cookies}; wb_session.1=x`,
    ]) {
      for (const line of ['GET /auth/me', 'POST /auth/refresh']) {
        const answer = await opened.send(line, undefined, { cookie })
        expect(answer.status, cookie).toBe(401)
      }
      expect((await opened.send('POST /auth/logout', undefined, { cookie })).status).toBe(200)
    }
  })

  test('a session of another site with a shared secret is rejected', async () => {
    const first = await openSignInFixture()
    const alice = first.browser()
    await alice.signIn()
    const { cookies: cookie } = alice
    const elsewhere = await openSignInFixture({
      provider: first.provider,
      runtime: { publicOrigin: 'http://localhost:9999' },
    })
    expect((await elsewhere.opened.send('GET /auth/me', undefined, { cookie })).status).toBe(401)
    const renamed = await openSignInFixture({
      provider: first.provider,
      client: { sessionCookieName: 'other' },
    })
    const moved = cookie.replace('wb_session', 'other')
    expect((await renamed.opened.send('GET /auth/me', undefined, { cookie: moved })).status).toBe(401)
  })

  test('a page from another origin can neither refresh nor end a session [security rule 3]', async () => {
    const { opened, browser, provider } = await openSignInFixture()
    const alice = browser()
    await alice.signIn()
    const before = provider.requests.length
    const peer = { encrypted: false, address: '127.0.0.1' }
    for (const path of ['/auth/refresh', '/auth/logout']) {
      for (const [name, value] of [
        ['origin', 'https://evil.example'],
        ['origin', 'null'],
        ['sec-fetch-site', 'cross-site'],
      ] as const) {
        const headers = { host: 'localhost', cookie: alice.cookies, [name]: value }
        const request = new Request(siteOrigin + path, { method: 'POST', headers })
        const answer = await opened.runtime.app.fetch(request, { peer })
        expect([answer.status, answer.headers.getSetCookie()]).toEqual([403, []])
      }
    }
    expect(provider.requests.length).toBe(before)
  })
})

describe('device token refresh does not accept foreign tokens [security rule 13]', () => {
  test('a stolen provider refresh token is rejected without a request to the provider', async () => {
    const { opened, provider, browser } = await openSignInFixture()
    const { body } = await opened.send('POST /auth/device/authorize')
    await browse(String(body.verification_uri_complete))
    const tokens = await opened.send('POST /auth/device/token', { device_code: body.device_code })
    await opened.send('POST /auth/device/refresh', { refresh_token: tokens.body.refresh_token })
    const raw = provider.requests.map(({ form }) => form.get('refresh_token')).find(token => token !== null)
    const alice = browser()
    await alice.signIn()
    const before = provider.requests.length
    for (const refresh_token of [raw, alice.cookies.split('=')[1], tokens.body.access_token]) {
      const answer = await opened.send('POST /auth/device/refresh', { refresh_token })
      expect([answer.status, codeOf(answer)]).toEqual([400, 'invalid_grant'])
    }
    expect(provider.requests.length).toBe(before)
  })
})
