import { describe, expect, test } from 'vitest'
import { type Browser, codeOf, type Stage, site, stage } from '../auth/session/stage.ts'
import { drive } from '../harness/identity-provider.ts'

/**
 * How somebody would get into another's session, or lead a browser astray.
 *
 * @see docs/security.md#rule-3, docs/security.md#rule-12, docs/security.md#rule-13
 */

async function refusedState({ opened }: Stage, line: string, cookie: string): Promise<void> {
  const answer = await opened.send(line, undefined, cookie ? { cookie } : {})
  expect([answer.status, codeOf(answer)], answer.text).toEqual([400, 'invalid_state'])
  expect(answer.headers.getSetCookie()).toEqual([])
}

/** What a browser would send to the callback. */
function bindingOf({ jar }: Browser): string {
  return jar.header(new URL('/auth/callback', site))
}

describe('a login belongs to the browser that began it [security rule 12]', () => {
  test('S5.7-05: a link with the code of somebody else signs nobody in', async () => {
    const staged = await stage()
    const [mallory, victim] = [staged.browser(), staged.browser()]
    const link = await mallory.comeBack({ login: 'mallory' })
    await refusedState(staged, link, '')
    await victim.comeBack()
    await refusedState(staged, await mallory.comeBack({ login: 'mallory' }), bindingOf(victim))
  })

  test('S5.7-05: state and cookie of two browsers do not go together, in either way', async () => {
    const staged = await stage()
    const [one, other] = [staged.browser(), staged.browser()]
    const lines = [await one.comeBack(), await other.comeBack()] as const
    const cookies = [bindingOf(one), bindingOf(other)] as const
    await refusedState(staged, lines[0], cookies[1])
    await refusedState(staged, lines[1], cookies[0])
  })

  test('S5.7-05: under the name of the one the value of the other does not help', async () => {
    const staged = await stage()
    const [one, other] = [staged.browser(), staged.browser()]
    const lines = [await one.comeBack(), await other.comeBack()] as const
    const [name] = bindingOf(one).split('=')
    const [, value] = bindingOf(other).split('=')
    await refusedState(staged, lines[0], `${name}=${value}`)
    await refusedState(staged, lines[1], bindingOf(other).slice(0, -1))
  })

  test('S5.7-05: a doubled binding cookie is none', async () => {
    const staged = await stage()
    const alice = staged.browser()
    const line = await alice.comeBack()
    const cookie = bindingOf(alice)
    await refusedState(staged, line, `${cookie}; ${cookie}`)
  })

  test('S5.7-06: the code of one login is not good with the state of another of the same browser', async () => {
    const staged = await stage()
    const alice = staged.browser()
    const [one, other] = [await alice.comeBack(), await alice.comeBack()]
    const code = new URL(one.slice(4), site).searchParams.get('code')!
    const answer = await alice.send(other.replace(/code=[^&]*/, `code=${code}`))
    expect([answer.status, codeOf(answer)]).toEqual([502, 'token_exchange_failed'])
    expect(answer.headers.getSetCookie()).toEqual([])
  })

  test('a doubled parameter of the callback is refused', async () => {
    const staged = await stage()
    const alice = staged.browser()
    const line = await alice.comeBack()
    const answer = await alice.send(`${line}&state=x`)
    expect(answer.status).toBe(400)
    expect(answer.headers.getSetCookie()).toEqual([])
  })

  test('a provider that names itself otherwise in the callback is not believed', async () => {
    const staged = await stage()
    const alice = staged.browser()
    const line = await alice.comeBack()
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
  ])('S5.7-09 S5.7-10 S5.7-11: %s leads nowhere else', async after => {
    const { browser } = await stage()
    const answer = await browser().signIn({ after })
    expect([answer.status, answer.headers.get('location')]).toEqual([302, '/'])
  })
})

describe('a session cookie is whole, of this site, and there once [security rule 12]', () => {
  test('S2.5-07: truncated or changed at any byte it is no session, and never a failure of the runtime', async () => {
    const { opened, browser } = await stage()
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

  test('S2.5-07: of two cookies of one name none is believed, whoever comes first', async () => {
    const { opened, browser } = await stage()
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

  test('a session of another site of the same secret is none here', async () => {
    const first = await stage()
    const alice = first.browser()
    await alice.signIn()
    const { cookies: cookie } = alice
    const elsewhere = await stage({
      provider: first.provider,
      runtime: { publicOrigin: 'http://localhost:9999' },
    })
    expect((await elsewhere.opened.send('GET /auth/me', undefined, { cookie })).status).toBe(401)
    const renamed = await stage({ provider: first.provider, client: { sessionCookieName: 'other' } })
    const moved = cookie.replace('wb_session', 'other')
    expect((await renamed.opened.send('GET /auth/me', undefined, { cookie: moved })).status).toBe(401)
  })

  test('a page of another origin neither renews nor ends a session [security rule 3]', async () => {
    const { opened, browser, provider } = await stage()
    const alice = browser()
    await alice.signIn()
    const before = provider.asked.length
    const peer = { encrypted: false, address: '127.0.0.1' }
    for (const path of ['/auth/refresh', '/auth/logout']) {
      for (const [name, value] of [
        ['origin', 'https://evil.example'],
        ['origin', 'null'],
        ['sec-fetch-site', 'cross-site'],
      ] as const) {
        const headers = { host: 'localhost', cookie: alice.cookies, [name]: value }
        const request = new Request(site + path, { method: 'POST', headers })
        const answer = await opened.runtime.app.fetch(request, { peer })
        expect([answer.status, answer.headers.getSetCookie()]).toEqual([403, []])
      }
    }
    expect(provider.asked.length).toBe(before)
  })
})

describe('the renewal of devices is no oracle [security rule 13]', () => {
  test('a refresh token that was stolen from the provider gets nothing, and costs it nothing', async () => {
    const { opened, provider, browser } = await stage()
    const { body } = await opened.send('POST /auth/device/authorize')
    await drive(String(body.verification_uri_complete))
    const tokens = await opened.send('POST /auth/device/token', { device_code: body.device_code })
    await opened.send('POST /auth/device/refresh', { refresh_token: tokens.body.refresh_token })
    const raw = provider.asked.map(({ form }) => form.get('refresh_token')).find(token => token !== null)
    const alice = browser()
    await alice.signIn()
    const before = provider.asked.length
    for (const refresh_token of [raw, alice.cookies.split('=')[1], tokens.body.access_token]) {
      const answer = await opened.send('POST /auth/device/refresh', { refresh_token })
      expect([answer.status, codeOf(answer)]).toEqual([400, 'invalid_grant'])
    }
    expect(provider.asked.length).toBe(before)
  })
})
