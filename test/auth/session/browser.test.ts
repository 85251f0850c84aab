import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { browse, clients, startProvider } from '../../harness/identity-provider.ts'
import {
  codeOf,
  interceptProvider,
  OffsetClock,
  openSignInFixture,
  sessionSecrets,
  siteOrigin,
} from './sign-in-fixture.ts'

const tokenPath = '/token'

describe('browser sign-in', () => {
  test('S3-06 S4.3-06 S5.7-01 S5.7-04: redirects to the provider with PKCE', async () => {
    const { provider, opened } = await openSignInFixture()
    const first = await opened.send('GET /auth/login')
    const second = await opened.send('GET /auth/login')
    expect(first.status).toBe(302)
    expect(first.headers.get('cache-control')).toBe('no-store')
    const url = new URL(first.headers.get('location')!)
    expect(url.origin + url.pathname).toBe(`${provider.issuer}/auth`)
    expect(Object.fromEntries(url.searchParams)).toMatchObject({
      response_type: 'code',
      client_id: clients.public.id,
      redirect_uri: `${siteOrigin}/auth/callback`,
      code_challenge_method: 'S256',
      state: expect.stringMatching(/^[\w-]{43}$/),
      nonce: expect.stringMatching(/^[\w-]{43}$/),
      code_challenge: expect.stringMatching(/^[\w-]{43}$/),
    })
    expect(url.searchParams.get('scope')).toMatch(/\bopenid\b.*\bprofile\b.*\bemail\b/)
    const other = new URL(second.headers.get('location')!)
    for (const name of ['state', 'nonce', 'code_challenge'])
      expect(other.searchParams.get(name)).not.toBe(url.searchParams.get(name))
  })

  test('binds the login to the browser by a short-lived cookie that is sent only to the callback [security rule 12]', async () => {
    const { opened } = await openSignInFixture()
    const [line, ...more] = (await opened.send('GET /auth/login')).headers.getSetCookie()
    expect(more).toEqual([])
    expect(line).toMatch(
      /^wb_session_login_[\w-]{12}=[\w-]{43}; Path=\/auth\/callback; Max-Age=600; HttpOnly; SameSite=Lax$/,
    )
  })

  test('S3-08 S4.3-07 S5.7-01 S5.7-02 S5.7-06 S5.7-08 S2.2-26: exchanges the code and verifier, sets the session cookie, and redirects', async () => {
    const { provider, browser } = await openSignInFixture()
    const alice = browser()
    const after = encodeURIComponent('/workspaces?tab=1#top')
    const begun = new URL(
      (await alice.send(`GET /auth/login?redirect_after=${after}`)).headers.get('location')!,
    )
    const { url } = await browse(begun, { stopAt: `${siteOrigin}/auth/callback` })
    const answer = await alice.send(`GET ${url.slice(siteOrigin.length)}`)
    expect([answer.status, answer.text]).toEqual([302, ''])
    expect(answer.headers.get('location')).toBe('/workspaces?tab=1#top')
    expect(answer.headers.get('cache-control')).toBe('no-store')
    const [session, binding, ...more] = answer.headers.getSetCookie()
    expect(session).toMatch(
      /^wb_session=v2\.[\w-]{16}\.[\w-]+\.[\w-]{22}; Path=\/; Max-Age=300; HttpOnly; SameSite=Lax$/,
    )
    expect(binding).toMatch(/^wb_session_login_[\w-]{12}=; Path=\/auth\/callback; Max-Age=0;/)
    expect(more).toEqual([])

    const exchange = provider.requests.find(({ path }) => path === tokenPath)!
    expect(exchange.form.get('grant_type')).toBe('authorization_code')
    expect(exchange.form.get('client_secret')).toBeNull()
    expect(exchange.authorization).toBeUndefined()
    const verifier = exchange.form.get('code_verifier')!
    expect(Buffer.from(verifier, 'base64url')).toHaveLength(32)
    const challenge = createHash('sha256').update(verifier).digest('base64url')
    expect(begun.searchParams.get('code_challenge')).toBe(challenge)
    expect(await me(alice)).toMatchObject({ id: 'alice', type: 'oidc' })
  })

  test('sets a session cookie with the lifetime of the token [S2.5-05]', async () => {
    for (const accessTokenSeconds of [120, 7_200]) {
      const { browser } = await openSignInFixture({ provider: { accessTokenSeconds } })
      const [session] = (await browser().signIn()).headers.getSetCookie()
      expect(session).toContain(`; Max-Age=${accessTokenSeconds};`)
    }
  })

  test('sends the secret of a confidential client only to the provider', async () => {
    const { browser, provider } = await openSignInFixture({
      environment: { CLIENT: clients.confidential.secret },
      client: { clientId: clients.confidential.id, clientSecretRef: 'env:CLIENT' },
    })
    const alice = browser()
    const answer = await alice.signIn()
    expect(answer.status).toBe(302)
    const [exchange] = provider.requests.filter(({ path }) => path === tokenPath)
    expect(exchange!.authorization ?? exchange!.form.get('client_secret')).toBeTruthy()
    expect(JSON.stringify([...answer.headers])).not.toContain(clients.confidential.secret)
  })

  test('S5.9-09: uses a changed client secret after a restart', async () => {
    const client = { clientId: clients.confidential.id, clientSecretRef: 'env:CLIENT' }
    const first = await openSignInFixture({
      client,
      environment: { CLIENT: 'a secret that the provider does not know' },
    })
    expect(codeOf(await first.browser().signIn())).toBe('token_exchange_failed')
    const next = await first.restart({ environment: { CLIENT: clients.confidential.secret } })
    expect((await next.browser().signIn()).status).toBe(302)
  })

  test('S2.2-27 S2.2-28 S2.2-30 S2.2-31: uses the configured paths, scopes and cookie name', async () => {
    const { opened } = await openSignInFixture({
      runtime: { publicOrigin: 'https://wb.example' },
      client: {
        redirectPath: '/behind/a/proxy/auth/callback',
        scopes: ['openid', 'groups'],
        sessionCookieName: '__Host-wb',
      },
    })
    const answer = await opened.send('GET /auth/login')
    const query = new URL(answer.headers.get('location')!).searchParams
    expect(query.get('redirect_uri')).toBe('https://wb.example/behind/a/proxy/auth/callback')
    expect(query.get('scope')?.split(' ')).toEqual(expect.arrayContaining(['openid', 'groups']))
    expect(query.get('scope')).not.toMatch(/profile|email/)
    const [line] = answer.headers.getSetCookie()
    expect(line).toMatch(/^__Host-wb_login_[\w-]{12}=[\w-]{43}; Path=\/; .*; Secure$/)
  })

  test('S2.2-27: uses an absolute redirect path unchanged', async () => {
    const { opened } = await openSignInFixture({ client: { redirectPath: 'https://wb.example/back' } })
    const answer = await opened.send('GET /auth/login')
    const query = new URL(answer.headers.get('location')!).searchParams
    expect(query.get('redirect_uri')).toBe('https://wb.example/back')
    expect(answer.headers.getSetCookie()[0]).toContain('; Path=/back;')
  })

  test.each(['/sign-in/back', '/:back(x)*/', '/auth/back'])(
    'accepts the callback at the redirect path %s [S2.2-27]',
    async redirectPath => {
      const provider = await startProvider({ redirectUris: [`${siteOrigin}${redirectPath}`] })
      const { opened, browser } = await openSignInFixture({ provider, client: { redirectPath } })
      const alice = browser()
      const line = await alice.returnFromProvider({ to: redirectPath })
      expect(line).toContain(`GET ${redirectPath}?`)
      const answer = await alice.send(line)
      expect([answer.status, answer.headers.get('cache-control')]).toEqual([302, 'no-store'])
      expect((await alice.send('GET /auth/me')).status).toBe(200)
      expect((await opened.send(`POST ${redirectPath}`)).status).toBe(404)
      expect((await opened.send(`GET ${redirectPath}x`)).status).toBe(404)
    },
  )

  test('works in two tabs at the same time', async () => {
    const { browser } = await openSignInFixture()
    const alice = browser()
    const lines = [
      await alice.returnFromProvider({ after: '/one' }),
      await alice.returnFromProvider({ after: '/two' }),
    ]
    for (const [at, target] of ['/one', '/two'].entries()) {
      const answer = await alice.send(lines[at]!)
      expect([answer.status, answer.headers.get('location')]).toEqual([302, target])
    }
  })

  test('S5.7-10 S5.7-11: redirects to / instead of another origin', async () => {
    const { browser } = await openSignInFixture()
    for (const after of ['https://evil.example/', '//evil.example', '/%2f%2fevil.example', '/\\evil.example'])
      expect((await browser().signIn({ after })).headers.get('location')).toBe('/')
  })

  test('S3-09 S3-10 S5.7-05: rejects a replayed or unknown state, and sets no cookie', async () => {
    const { provider, browser } = await openSignInFixture()
    const alice = browser()
    const line = await alice.returnFromProvider()
    expect((await alice.send(line)).status).toBe(302)
    const before = provider.count(tokenPath)
    for (const again of [line, 'GET /auth/callback?code=x&state=unknown']) {
      const answer = await alice.send(again)
      expect([answer.status, codeOf(answer)]).toEqual([400, 'invalid_state'])
      expect(answer.headers.getSetCookie()).toEqual([])
      expect(answer.headers.get('cache-control')).toBe('no-store')
    }
    expect(provider.count(tokenPath)).toBe(before)
    expect(await me(alice)).toMatchObject({ id: 'alice' })
  })

  test('rejects a callback from another browser, and still accepts the right one', async () => {
    const { provider, opened, browser } = await openSignInFixture()
    const [alice, mallory] = [browser(), browser()]
    const line = await alice.returnFromProvider({ after: '/mine' })
    await mallory.returnFromProvider()
    const url = new URL(line.slice('GET '.length), siteOrigin)
    const own = alice.jar.header(url)
    const [name] = own.split('=')
    const foreign = [
      undefined,
      mallory.jar.header(url),
      `${name}=${'x'.repeat(43)}`,
      `${name}=`,
      `${own}; ${own}`,
    ]
    for (const cookie of foreign) {
      const answer = await opened.send(line, undefined, cookie === undefined ? {} : { cookie })
      expect([answer.status, codeOf(answer)], cookie).toEqual([400, 'invalid_state'])
      expect(answer.headers.getSetCookie()).toEqual([])
    }
    expect(provider.count(tokenPath)).toBe(0)
    const answer = await alice.send(line)
    expect([answer.status, answer.headers.get('location')]).toEqual([302, '/mine'])
    expect(await me(alice)).toMatchObject({ id: 'alice' })
  })

  test('accepts one of two concurrent callbacks [S5.7-05]', async () => {
    const { provider, browser } = await openSignInFixture()
    const alice = browser()
    const line = await alice.returnFromProvider()
    const answers = await Promise.all([alice.send(line), alice.send(line)])
    expect(answers.map(answer => [answer.status, codeOf(answer)]).sort()).toEqual([
      [302, undefined],
      [400, 'invalid_state'],
    ])
    expect(provider.count(tokenPath)).toBe(1)
  })

  test('S3-07 S5.7-03 S8-11: expires after ten minutes', async () => {
    const clock = new OffsetClock()
    const { browser } = await openSignInFixture({ clock, provider: { accessTokenSeconds: 3_600 } })
    const [early, late] = [browser(), browser()]
    const lines = [await early.returnFromProvider(), await late.returnFromProvider()]
    clock.offsetMs = 9.5 * 60_000
    expect((await early.send(lines[0]!)).status).toBe(302)
    clock.offsetMs = 10 * 60_000 + 1_000
    const answer = await late.send(lines[1]!)
    expect([answer.status, codeOf(answer)]).toEqual([400, 'invalid_state'])
    expect(answer.headers.getSetCookie()).toEqual([])
  })

  test('reports known error codes of the provider, and hides unknown ones', async () => {
    const { provider, browser } = await openSignInFixture()
    const alice = browser()
    const denied = await alice.signIn({ deny: true })
    expect([denied.status, codeOf(denied)]).toEqual([400, 'access_denied'])
    for (const [query, code] of [
      ['error=login_required&state=x', 'login_required'],
      ['error=toString', 'invalid_callback'],
      ['error=', 'invalid_callback'],
      ['error=unauthorized', 'invalid_callback'],
      ['code=x', 'invalid_callback'],
      ['state=x', 'invalid_callback'],
      ['code=&state=', 'invalid_callback'],
      ['', 'invalid_callback'],
    ]) {
      const answer = await alice.send(`GET /auth/callback?${query}&error_description=%3Cb%3E`)
      expect([answer.status, codeOf(answer)], query).toEqual([400, code])
      expect(answer.text).not.toContain('<b>')
      expect(answer.headers.getSetCookie()).toEqual([])
    }
    expect(provider.count(tokenPath)).toBe(0)
  })

  test('S5.7-06: fails with token_exchange_failed and sets no cookie if the provider rejects the code', async () => {
    const { browser } = await openSignInFixture()
    const alice = browser()
    const line = await alice.returnFromProvider()
    const answer = await alice.send(line.replace(/code=[^&]*/, 'code=wrong'))
    expect([answer.status, codeOf(answer)]).toEqual([502, 'token_exchange_failed'])
    expect(answer.headers.getSetCookie()).toEqual([])
    expect(answer.text).not.toContain('invalid_grant')
  })

  test('S5.7-07: creates no session for a token that the API would reject', async () => {
    const { browser } = await openSignInFixture({ oidc: { audience: 'https://someone-else.example' } })
    const answer = await browser().signIn()
    expect([answer.status, codeOf(answer)]).toEqual([502, 'token_validation_failed'])
    expect(answer.headers.getSetCookie()).toEqual([])
  })

  test('fails with 503 and sets no cookie if the provider is unreachable in the callback', async () => {
    const { provider, browser } = await openSignInFixture()
    const alice = browser()
    const line = await alice.returnFromProvider()
    interceptProvider(provider, ({ path }) => (path === tokenPath ? { status: 500 } : undefined))
    const answer = await alice.send(line)
    expect([answer.status, codeOf(answer)]).toEqual([503, 'identity_provider_unavailable'])
    expect(answer.headers.getSetCookie()).toEqual([])
  })

  test('fails with 503 if the provider is unreachable at the start', async () => {
    const { provider, opened } = await openSignInFixture()
    await provider.stop()
    const answer = await opened.send('GET /auth/login')
    expect([answer.status, codeOf(answer)]).toEqual([503, 'identity_provider_unavailable'])
    expect(answer.headers.getSetCookie()).toEqual([])
  })

  test('splits a 6 KB access token into several cookies [security rule 12]', async () => {
    const { browser } = await openSignInFixture({ provider: { paddingChars: 4_400 } })
    const alice = browser()
    const answer = await alice.signIn()
    const names = answer.headers.getSetCookie().map(line => line.slice(0, line.indexOf('=')))
    expect(names.slice(0, -1)).toEqual(['wb_session', 'wb_session.1', 'wb_session.2'])
    expect(await me(alice)).toMatchObject({ id: 'alice', canRefresh: true })
    const refreshed = await alice.send('POST /auth/refresh')
    expect(refreshed.status).toBe(200)
    expect(await me(alice)).toMatchObject({ id: 'alice', canRefresh: true })
    await alice.send('POST /auth/logout')
    expect(alice.cookies).toBe('')
  })

  test('fails with session_too_large if the token does not fit into cookies [security rule 12]', async () => {
    const { browser } = await openSignInFixture({ provider: { paddingChars: 11_000 } })
    const answer = await browser().signIn()
    expect([answer.status, codeOf(answer)]).toEqual([502, 'session_too_large'])
    expect(answer.headers.getSetCookie()).toEqual([])
  })
})

describe('browser session', () => {
  test('S2.6-01 S2.6-02 S2.6-03 S2.6-04 S2.6-05 S2.6-07 S2.6-08 S2.6-09: shows its subject', async () => {
    const { browser } = await openSignInFixture({ provider: { accessTokenSeconds: 300 } })
    const alice = browser()
    await alice.signIn()
    const answer = await alice.send('GET /auth/me')
    expect(answer.headers.get('cache-control')).toBe('no-store')
    const nowSeconds = Date.now() / 1000
    const { expiresAt, ...self } = answer.body
    expect(self).toEqual({
      id: 'alice',
      label: 'alice@example.test',
      type: 'oidc',
      workspaceScopes: null,
      role: null,
      scopes: null,
      canRefresh: true,
    })
    expect(Number.isInteger(expiresAt)).toBe(true)
    expect(Math.abs(Number(expiresAt) - nowSeconds - 300)).toBeLessThan(10)
  })

  test('S2.6-04 S2.6-05 S2.6-10: shows its mapped role, and routes check its scopes', async () => {
    const reach = ['00000000-0000-4000-8000-000000000001']
    const { browser } = await openSignInFixture({
      provider: { claims: { alice: { groups: ['readers'], wb_workspace_scopes: reach } } },
      oidc: { roleMapping: { claim: 'groups', values: { readers: 'viewer' } } },
    })
    const alice = browser()
    await alice.signIn()
    expect(await me(alice)).toMatchObject({ role: 'viewer', scopes: ['read'], workspaceScopes: reach })
    expect((await alice.send(`GET /api/v1/workspaces/${reach[0]}`)).status).toBe(404)
    const deleted = await alice.send(`DELETE /api/v1/workspaces/${reach[0]}`)
    expect([deleted.status, codeOf(deleted)]).toEqual([403, 'forbidden'])
  })

  test('S5.1-03 S4.3-08: is promoted to a bearer token and checked by the same verifier', async () => {
    const { provider, opened, browser } = await openSignInFixture()
    const alice = browser()
    await alice.signIn()
    expect((await alice.send('GET /api/v1/workspaces')).status).toBe(200)
    const token = await provider.sign()
    const bearer = await opened.send('GET /auth/me', undefined, { authorization: `Bearer ${token}` })
    expect(bearer.body).toMatchObject({ id: 'alice', canRefresh: false, expiresAt: expect.any(Number) })
    const stranger = await opened.send('GET /auth/me')
    expect([stranger.status, codeOf(stranger)]).toEqual([401, 'unauthorized'])
    expect(stranger.headers.get('cache-control')).toBe('no-store')
    expect(stranger.headers.get('www-authenticate')).toBe('Bearer')
    await provider.rotateKeys()
    const withdrawn = await (await openSignInFixture({ provider })).opened.send('GET /auth/me', undefined, {
      cookie: alice.cookies,
    })
    expect([withdrawn.status, codeOf(withdrawn)]).toEqual([401, 'unauthorized'])
  })

  test('is ignored if there is an Authorization header', async () => {
    const { provider, opened, browser } = await openSignInFixture()
    const alice = browser()
    await alice.signIn()
    const { cookies: cookie } = alice
    const bob = { cookie, authorization: `Bearer ${await provider.sign({ sub: 'bob' })}` }
    expect((await opened.send('GET /auth/me', undefined, bob)).body.id).toBe('bob')
    expect((await opened.send('GET /auth/me', undefined, { ...bob, authorization: 'Bearer x' })).status).toBe(
      401,
    )
  })

  test('S2.5-04 S2.2-28: ignores forged X-Forwarded-* headers', async () => {
    const { opened, browser } = await openSignInFixture()
    const alice = browser()
    alice.headers = {
      'x-forwarded-proto': 'https',
      'x-forwarded-host': 'evil.example',
      'x-forwarded-for': '127.0.0.1',
      forwarded: 'for=127.0.0.1;host=evil.example;proto=https',
    }
    const begun = await alice.send('GET /auth/login')
    expect(new URL(begun.headers.get('location')!).searchParams.get('redirect_uri')).toBe(
      `${siteOrigin}/auth/callback`,
    )
    const answer = await alice.signIn()
    for (const line of answer.headers.getSetCookie()) expect(line).not.toMatch(/secure|evil/i)
    expect((await opened.send('GET /auth/me', undefined, { cookie: alice.cookies })).body.id).toBe('alice')
  })

  test.each([
    [['10.0.0.0/8'], 'https://wb.example', true],
    [true, 'https://wb.example', true],
    [['192.168.0.1'], 'http://localhost', false],
    [false, 'http://localhost', false],
  ])(
    'S2.5-04 S2.2-28: handles X-Forwarded-* of a proxy with trustProxyHeaders %j',
    async (trusted, seen, secure) => {
      const { opened } = await openSignInFixture({
        runtime: { trustProxyHeaders: trusted, allowedHosts: ['wb.example'] },
      })
      const request = new Request(`${siteOrigin}/auth/login`, {
        headers: { host: 'localhost', 'x-forwarded-proto': 'https', 'x-forwarded-host': 'wb.example' },
      })
      const peer = { encrypted: false, address: '10.0.0.1' }
      const answer = await opened.runtime.app.fetch(request, { peer })
      const query = new URL(answer.headers.get('location')!).searchParams
      expect(query.get('redirect_uri')).toBe(`${seen}/auth/callback`)
      expect(answer.headers.getSetCookie()[0]!.endsWith('; Secure')).toBe(secure)
    },
  )

  test('S5.9-10: continues after a secret is added to the list', async () => {
    const first = await openSignInFixture()
    const alice = first.browser()
    await alice.signIn()
    const { cookies: cookie } = alice
    const next = await first.restart({ client: { sessionSecretRef: ['env:SESSION_2', 'env:SESSION_1'] } })
    expect((await next.opened.send('GET /auth/me', undefined, { cookie })).body.id).toBe('alice')
    const bob = next.browser()
    await bob.signIn({ login: 'bob' })
    const last = await next.restart({ client: { sessionSecretRef: 'env:SESSION_2' } })
    expect((await last.opened.send('GET /auth/me', undefined, { cookie: bob.cookies })).body.id).toBe('bob')
    expect((await last.opened.send('GET /auth/me', undefined, { cookie })).status).toBe(401)
  })

  test('S5.7-24 S5.9-10: ends at a restart with another secret', async () => {
    const first = await openSignInFixture()
    const alice = first.browser()
    await alice.signIn()
    const { cookies: cookie } = alice
    const next = await first.restart({ environment: { SESSION_1: sessionSecrets.second } })
    const answer = await next.opened.send('GET /auth/me', undefined, { cookie })
    expect([answer.status, codeOf(answer)]).toEqual([401, 'unauthorized'])
  })

  test('S2.2-33: ends with the process if there is no secret, and the server logs a warning', async () => {
    const first = await openSignInFixture({ client: { sessionSecretRef: null }, server: true })
    expect(first.opened.loggedProblems.map(({ message }) => message)).toContainEqual(
      expect.stringContaining('auth.oidc.client.sessionSecretRef is not set'),
    )
    const alice = first.browser()
    await alice.signIn()
    const { cookies: cookie } = alice
    expect((await first.opened.send('GET /auth/me', undefined, { cookie })).status).toBe(200)
    const next = await first.restart()
    expect((await next.opened.send('GET /auth/me', undefined, { cookie })).status).toBe(401)
    const named = await openSignInFixture({ provider: first.provider, server: true })
    expect(named.opened.loggedProblems).toEqual([])
    const led = { redirectPath: '/healthz' }
    const odd = await openSignInFixture({ provider: first.provider, server: true, client: led })
    expect(odd.opened.loggedProblems.map(({ message }) => message)).toEqual([
      expect.stringContaining('auth.oidc.client.redirectPath is the path of another route'),
    ])
  })

  test('S3-16 S4.3-13 S5.7-22 S2.2-29: ends at logout by clearing its cookie, without a request to the provider', async () => {
    const { provider, opened, browser } = await openSignInFixture({ client: { postLogoutPath: '/bye' } })
    const alice = browser()
    await alice.signIn()
    const before = provider.requests.length
    const answer = await alice.send('POST /auth/logout')
    expect([answer.status, answer.body]).toEqual([200, { postLogoutPath: '/bye' }])
    expect(answer.headers.getSetCookie()).toEqual(['wb_session=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax'])
    expect(answer.headers.get('cache-control')).toBe('no-store')
    expect(alice.cookies).toBe('')
    const stranger = await opened.send('POST /auth/logout')
    expect([stranger.status, stranger.body]).toEqual([200, { postLogoutPath: '/bye' }])
    await provider.stop()
    expect((await opened.send('POST /auth/logout')).status).toBe(200)
    expect(provider.requests.length).toBe(before)
  })
})

async function me(browser: {
  send(line: string): Promise<{ status: number; body: Record<string, unknown> }>
}) {
  const answer = await browser.send('GET /auth/me')
  expect(answer.status).toBe(200)
  return answer.body
}
