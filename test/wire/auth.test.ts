import { describe, expect, test } from 'vitest'
import { audience, browse, CookieJar, clients } from '../harness/identity-provider.ts'
import { anyNumber, anyText, matching } from './exactly.ts'
import { expectRefusal, type Reply, type Row, serve, useServer, Wire } from './harness.ts'
import { signInPlace } from './sign-in-place.ts'

const { bootstrap, env, configured, signingIn, provider } = await signInPlace()
const wire = useServer({ env, args: configured('login', signingIn({ postLogoutPath: '/bye' })) })

const sealed = matching(/^v2\.[\w-]{16}\.[\w-]+\.[\w-]{22}$/)
const jwt = matching(/^[\w-]+\.[\w-]+\.[\w-]+$/)

/** Signs in as a browser does, and returns its cookies. */
async function browser(login = 'alice', after = '/version'): Promise<CookieJar> {
  const jar = new CookieJar()
  const url = `${wire.serving.url}/auth/login?redirect_after=${encodeURIComponent(after)}`
  const arrived = await browse(url, { jar, login })
  expect([arrived.url, arrived.status], arrived.text).toEqual([`${wire.serving.url}${after}`, 200])
  return jar
}

/** Requests a page of the runtime. */
async function asPage(jar: CookieJar, line: string): Promise<Reply & { setCookie: readonly string[] }> {
  const [method, path] = line.split(' ') as [string, string]
  const { url } = wire.serving
  const at = new URL(path, url)
  const answer = await fetch(at, {
    method,
    redirect: 'manual',
    headers: { cookie: jar.header(at), origin: url, connection: 'close' },
  })
  jar.storeCookies(at, answer.headers)
  const text = await answer.text()
  const body = answer.headers.get('content-type')?.startsWith('application/json')
    ? JSON.parse(text)
    : undefined
  const headers = Object.fromEntries(answer.headers)
  expect(headers['cache-control']).toBe('no-store')
  return { status: answer.status, headers, text, body, setCookie: answer.headers.getSetCookie() }
}

describe('GET /auth/config', () => {
  test('S4.3-02 S4.3-03 S4.3-04 S4.3-05: lists all available sign-in methods', async () => {
    await wire.exchange('GET /auth/config', undefined, 200, {
      modes: { apiKey: true, oidc: true, login: true, device: true },
      loginPath: '/auth/login',
      refreshPath: '/auth/refresh',
      deviceAuthorizePath: '/auth/device/authorize',
      deviceTokenPath: '/auth/device/token',
      deviceRefreshPath: '/auth/device/refresh',
    })
  })

  test.each([
    ['disabled', { mode: 'disabled' }, { apiKey: false, oidc: false }],
    ['apiKey', { mode: 'apiKey', anonymousPolicy: 'reject' }, { apiKey: true, oidc: false }],
    [
      'oidc without a client',
      { mode: 'oidc', anonymousPolicy: 'reject', oidc: { issuer: provider.issuer, audience } },
      { apiKey: false, oidc: true },
    ],
  ])('S4.3-01 S4.3-03: lists the sign-in methods with %s', async (name, auth, modes) => {
    const serving = await serve({ args: configured(name.replaceAll(' ', '-'), auth) })
    const other = new Wire()
    other.open(serving.url)
    try {
      await other.exchange('GET /auth/config', undefined, 200, {
        modes: { ...modes, login: false, device: false },
        loginPath: null,
        refreshPath: null,
        deviceAuthorizePath: null,
        deviceTokenPath: null,
        deviceRefreshPath: null,
      })
      await other.refused('GET /auth/me', {}, 401, 'unauthorized')
      for (const line of [
        'GET /auth/login',
        'GET /auth/callback?code=a&state=b',
        'POST /auth/refresh',
        'POST /auth/logout',
        'POST /auth/device/authorize',
      ])
        await other.refused(line, {}, 404, 'not_configured')
      for (const path of ['/auth/login', '/auth/device/token', '/auth/logout', '/auth/other'])
        for (const method of ['GET', 'PUT', 'DELETE', 'OPTIONS'])
          await other.refused(`${method} ${path}`, {}, 404, 'not_configured')
      const headers = { 'content-type': 'application/json' }
      for (const raw of ['', '{"device_code":"x"}', '{"x"', Buffer.alloc(20_000, ' ')])
        await other.refused('POST /auth/device/token', { raw, headers }, 404, 'not_configured')
    } finally {
      await other.close()
      expect(await serving.stop()).toBe(0)
    }
  })
})

describe('a browser', () => {
  test('S3-06 S4.3-06 S5.7-02 S2.2-28: is redirected to the identity provider by /auth/login', async () => {
    const reply = await wire.send('GET /auth/login')
    expect([reply.status, reply.text]).toEqual([302, ''])
    expect(reply.headers['cache-control']).toBe('no-store')
    const url = new URL(reply.headers.location!)
    expect(url.origin).toBe(provider.issuer)
    expect(Object.fromEntries(url.searchParams)).toMatchObject({
      client_id: clients.confidential.id,
      redirect_uri: `${wire.serving.url}/auth/callback`,
      response_type: 'code',
      code_challenge_method: 'S256',
    })
    expect(reply.headers['set-cookie']).toMatch(
      /; Path=\/auth\/callback; Max-Age=600; HttpOnly; SameSite=Lax$/,
    )
  })

  test('S2.5-01 S2.6-01 S3-08 S4.3-07 S4.3-08 S5.7-08: signs in and is recognized', async () => {
    const jar = await browser()
    expect(jar.header(new URL(wire.serving.url))).toMatch(/^wb_session=v2\.[\w.-]+$/)
    const reply = await asPage(jar, 'GET /auth/me')
    expect(reply.body).toEqual({
      id: 'alice',
      label: 'alice@example.test',
      type: 'oidc',
      workspaceScopes: null,
      role: null,
      scopes: null,
      expiresAt: expect.any(Number),
      canRefresh: true,
    })
  })

  test('S3-11 S4.3-09: renews its session', async () => {
    const jar = await browser('bob')
    const reply = await asPage(jar, 'POST /auth/refresh')
    expect([reply.status, reply.body]).toEqual([200, { ok: true, expiresAt: expect.any(Number) }])
    expect(reply.setCookie).toEqual([expect.stringMatching(/^wb_session=v2\.[^;]+; Path=\/; Max-Age=300; /)])
    expect((await asPage(jar, 'GET /auth/me')).body).toMatchObject({ id: 'bob' })
  })

  test('S3-12 S4.3-10: cannot renew without a session', async () => {
    const reply = await asPage(new CookieJar(), 'POST /auth/refresh')
    expectRefusal(reply, 401, 'no_refresh_token', 'POST /auth/refresh')
    expect(reply.setCookie).toEqual(['wb_session=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax'])
  })

  test('S3-16 S4.3-13 S5.7-22: signs out', async () => {
    const jar = await browser()
    const reply = await asPage(jar, 'POST /auth/logout')
    expect([reply.status, reply.body]).toEqual([200, { postLogoutPath: '/bye' }])
    expect(reply.setCookie).toEqual(['wb_session=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax'])
    expectRefusal(await asPage(jar, 'GET /auth/me'), 401, 'unauthorized', 'GET /auth/me')
  })

  test.each([
    ['', 400, 'invalid_callback'],
    ['?code=x', 400, 'invalid_callback'],
    ['?code=x&state=y', 400, 'invalid_state'],
    ['?error=access_denied', 400, 'access_denied'],
    ['?error=internal_error', 400, 'invalid_callback'],
    ['?state=x&state=y', 400, 'validation_error'],
  ] as const)('S3-10: is rejected at the callback with %j', async (query, status, code) => {
    const reply = await wire.refused(`GET /auth/callback${query}`, {}, status, code)
    expect(reply.headers['set-cookie']).toBeUndefined()
    expect(reply.headers['cache-control']).toBe('no-store')
  })

  test('S6-10 S6-11 S6-12: appears in the audit trail when it signs in and out', async () => {
    const jar = await browser('carol')
    await asPage(jar, 'POST /auth/refresh')
    await asPage(jar, 'POST /auth/logout')
    const actionsOfCarol = async () => {
      const page = await wire.send('GET /api/v1/audit?limit=100', {
        headers: { authorization: `Bearer ${bootstrap}` },
      })
      expect(page.status, page.text).toBe(200)
      expect(page.text).not.toMatch(/eyJ|v2\./)
      const records = (page.body as { items: Row[] }).items
      return records
        .filter(({ subject }) => (subject as Row | null)?.id === 'carol')
        .map(({ action }) => action)
    }
    await expect.poll(actionsOfCarol).toEqual(['auth.logout', 'auth.refresh', 'auth.login'])
  })
})

describe('a device', () => {
  const beginning = {
    device_code: anyText,
    user_code: anyText,
    verification_uri: `${provider.issuer}/device`,
    verification_uri_complete: anyText,
    expires_in: 600,
    interval: 5,
  }

  test('S4.3-14 S4.3-15 S4.3-16 S4.3-17 S6-02 S6-03: is approved in a browser', async () => {
    const started = await wire.exchange('POST /auth/device/authorize', undefined, 200, beginning)
    const { device_code } = started
    const pending = { json: { device_code } }
    const waiting = await wire.refused('POST /auth/device/token', pending, 400, 'authorization_pending')
    expect(waiting.headers['cache-control']).toBe('no-store')
    await browse(String(started.verification_uri_complete), { login: 'dora' })
    const tokens = {
      access_token: jwt,
      token_type: 'Bearer',
      expires_in: anyNumber,
      refresh_token: sealed,
      scope: matching(/^.*$/),
    }
    const first = await wire.exchange('POST /auth/device/token', { device_code }, 200, tokens)
    const { refresh_token } = first
    const next = await wire.exchange('POST /auth/device/refresh', { refresh_token }, 200, tokens)
    const self = await wire.send('GET /auth/me', {
      headers: { authorization: `Bearer ${next.access_token}` },
    })
    expect(self.body).toMatchObject({ id: 'dora', canRefresh: false })
    const codes = async () => {
      const records = await wire.send('GET /api/v1/audit?action=auth.device.authorize', {
        headers: { authorization: `Bearer ${bootstrap}` },
      })
      return (records.body as { items: { details: Row }[] }).items.map(({ details }) => details.user_code)
    }
    await expect.poll(codes).toContain(started.user_code)
  })

  test('S4.3-19: is denied in a browser', async () => {
    const started = await wire.exchange('POST /auth/device/authorize', undefined, 200, beginning)
    await browse(String(started.verification_uri_complete), { deny: true })
    const sent = { json: { device_code: started.device_code } }
    await wire.refused('POST /auth/device/token', sent, 400, 'access_denied')
  })

  test.each([
    [{ json: {} }, 'invalid_request'],
    [{ json: { device_code: 7 } }, 'invalid_request'],
    [{ raw: '{', headers: { 'content-type': 'application/json' } }, 'invalid_request'],
    [{ json: { device_code: 'unknown' } }, 'invalid_grant'],
  ])('is rejected if it sends %j', async (sent, code) => {
    await wire.refused('POST /auth/device/token', sent, 400, code)
  })

  test('is rejected if it sends more than a few kilobytes [S8-02]', async () => {
    const sent = { raw: Buffer.alloc(20_000, ' '), headers: { 'content-type': 'application/json' } }
    for (const path of ['token', 'refresh'])
      await wire.refused(`POST /auth/device/${path}`, sent, 413, 'payload_too_large')
  })

  test('can renew only with a refresh token that it was issued [security rule 13]', async () => {
    for (const refresh_token of ['x', 'v2.AAAAAAAAAAAAAAAA.AAAA.AAAAAAAAAAAAAAAAAAAAAA'])
      await wire.refused('POST /auth/device/refresh', { json: { refresh_token } }, 400, 'invalid_grant')
    await wire.refused('POST /auth/device/refresh', { json: {} }, 400, 'invalid_request')
  })
})
