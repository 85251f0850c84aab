import { describe, expect, test, vi } from 'vitest'
import { type Subject, verifiedContext } from '../../src/access/subject.ts'
import type { RequestCredentials } from '../../src/auth/authenticate.ts'
import { WbError } from '../../src/contract/errors.ts'
import type { RateLimits } from '../../src/http/rate-limit.ts'
import { TestClock } from '../harness/runtime.ts'
import { createTestApp, errorOf, settings, type TestRequestInit, throwError } from './test-app.ts'

const workspaceId = '8f2d3d8e-6f0e-4c0e-9d53-2f3a4b5c6d7e'
const workspace = `/api/v1/workspaces/${workspaceId}`
const outside = { peer: { encrypted: false, address: '192.0.2.1' } }
const host = { host: 'localhost:8787' }
const initFrom = (address: string, headers: Record<string, string> = {}): TestRequestInit => ({
  peer: { encrypted: false, address },
  headers: { ...host, ...headers },
})

const rateLimits: RateLimits = { windowMs: 60_000, capacity: 3, directCapacity: 3, authCapacity: 2 }
const createLimitedApp = (
  changed: Parameters<typeof createTestApp>[0] = {},
  sizes: Partial<RateLimits> = {},
) => createTestApp({ ...changed, settings: { rateLimits: { ...rateLimits, ...sizes }, ...changed.settings } })

const rateLimitHeadersOf = ({ status, headers }: Response) => [
  status,
  ...['limit', 'remaining', 'reset'].map(name => headers.get(`x-ratelimit-${name}`)),
]

describe('S8-06 S7.3-rate_limited: requests of one address', () => {
  test('every response has the remaining count, also for errors, and further requests are rejected', async () => {
    const { send } = createLimitedApp()
    expect(rateLimitHeadersOf(await send('GET /api/v1/notes', initFrom('192.0.2.1')))).toEqual([
      200,
      '3',
      '2',
      '20',
    ])
    expect(rateLimitHeadersOf(await send('GET /api/v1/nowhere', initFrom('192.0.2.1')))).toEqual([
      404,
      '3',
      '1',
      '40',
    ])
    const foreign = initFrom('192.0.2.1', { origin: 'https://evil.example' })
    expect(rateLimitHeadersOf(await send('POST /api/v1/notes', foreign))).toEqual([403, '3', '0', '60'])
    const refused = await send('GET /api/v1/notes', initFrom('192.0.2.1'))
    expect(rateLimitHeadersOf(refused)).toEqual([429, '3', '0', '60'])
    expect(refused.headers.get('retry-after')).toBe('20')
    expect(refused.headers.get('x-frame-options')).toBe('DENY')
    expect(await errorOf(refused)).toMatchObject({
      code: 'rate_limited',
      hint: expect.stringContaining('Retry-After'),
    })
  })

  test('S8-09: another address is not affected, and the bucket refills over time', async () => {
    const clock = new TestClock()
    const { send } = createLimitedApp({ clock })
    const status = async (address: string) => (await send('GET /api/v1/notes', initFrom(address))).status
    for (let at = 0; at < 3; at++) expect(await status('192.0.2.1')).toBe(200)
    expect(await status('192.0.2.1')).toBe(429)
    expect(await status('192.0.2.2')).toBe(200)
    clock.advance(20_000)
    expect([await status('192.0.2.1'), await status('192.0.2.1')]).toEqual([200, 429])
  })

  test('S8-09: addresses of one IPv6 network share a limit, and those of two networks do not', async () => {
    const { send } = createLimitedApp()
    const status = async (address: string) => (await send('GET /api/v1/notes', initFrom(address))).status
    for (const address of ['2001:db8:1:2::1', '2001:db8:1:2::2', '2001:DB8:1:2:ffff:ffff:ffff:ffff'])
      expect(await status(address)).toBe(200)
    expect(await status('2001:db8:1:2::3')).toBe(429)
    expect(await status('2001:db8:1:3::1')).toBe(200)
  })

  test('does not limit operational routes, calls in process or a runtime without limits', async () => {
    const { send } = createLimitedApp()
    for (let at = 0; at < 10; at++) {
      expect(rateLimitHeadersOf(await send('GET /healthz', initFrom('192.0.2.1')))).toEqual([
        200,
        null,
        null,
        null,
      ])
      expect(rateLimitHeadersOf(await send('GET /nowhere', initFrom('192.0.2.1')))).toEqual([
        404,
        null,
        null,
        null,
      ])
      expect(rateLimitHeadersOf(await send('GET /api/v1/notes'))).toEqual([200, null, null, null])
    }
    expect(rateLimitHeadersOf(await send('GET /api/v1/openapi.json', initFrom('192.0.2.1')))).toEqual([
      200,
      '3',
      '2',
      '20',
    ])
    expect(
      rateLimitHeadersOf(await createTestApp().send('GET /api/v1/notes', initFrom('192.0.2.1'))),
    ).toEqual([200, null, null, null])
  })

  test('S8-07: limits unknown paths below /auth/, separately from sign-in routes', async () => {
    const { send } = createLimitedApp()
    expect(rateLimitHeadersOf(await send('PUT /auth/login', initFrom('192.0.2.1')))).toEqual([
      404,
      '2',
      '1',
      '30',
    ])
    expect(rateLimitHeadersOf(await send('GET /auth/nowhere', initFrom('192.0.2.1')))).toEqual([
      404,
      '3',
      '2',
      '20',
    ])
  })

  test('limits each client behind a trusted proxy, and ignores forged forwarding headers', async () => {
    const trusting = createLimitedApp({ settings: { trustProxyHeaders: ['10.0.0.1'] } })
    const via = async (address: string, client: string) =>
      (await trusting.send('GET /api/v1/notes', initFrom(address, { 'x-forwarded-for': client }))).status
    for (let at = 0; at < 3; at++) expect(await via('10.0.0.1', '192.0.2.1')).toBe(200)
    expect(await via('10.0.0.1', '192.0.2.1')).toBe(429)
    expect(await via('10.0.0.1', '192.0.2.1, 192.0.2.2')).toBe(200)
    for (let at = 0; at < 3; at++) expect(await via('203.0.113.9', `198.51.100.${at}`)).toBe(200)
    expect(await via('203.0.113.9', '198.51.100.99')).toBe(429)
  })

  test('uses the smaller bucket for proxied requests on a loopback bind', async () => {
    const { send } = createLimitedApp({}, { directCapacity: 100 })
    const [direct, forwarded] = [initFrom('127.0.0.1'), initFrom('127.0.0.1', { forwarded: 'for=192.0.2.1' })]
    expect(rateLimitHeadersOf(await send('GET /api/v1/notes', direct))).toEqual([200, '100', '99', '1'])
    for (let at = 0; at < 3; at++) expect((await send('GET /api/v1/notes', forwarded)).status).toBe(200)
    expect((await send('GET /api/v1/notes', forwarded)).status).toBe(429)
    expect((await send('GET /api/v1/notes', direct)).status).toBe(200)
  })

  test('S6-14: limits requests before any expensive work, and writes no audit record', async () => {
    const [authenticate, create] = [vi.fn(), vi.fn()]
    const { send, audited } = createLimitedApp(
      { authenticate, notes: { create } },
      { capacity: 1, directCapacity: 1 },
    )
    await send('GET /api/v1/openapi.json', initFrom('192.0.2.1'))
    const body = new ReadableStream({ pull: () => expect.fail('the body was read') }, { highWaterMark: 0 })
    const attack = initFrom('192.0.2.1', {
      origin: 'https://evil.example',
      host: 'evil.example',
      'content-length': '99999999',
    })
    const refused = await send('POST /api/v1/notes', { ...attack, body, duplex: 'half' } as TestRequestInit)
    expect((await errorOf(refused)).code).toBe('rate_limited')
    expect([authenticate, create].map(fake => fake.mock.calls.length)).toEqual([0, 0])
    expect(audited).toEqual([])
  })
})

describe('the order of checks', () => {
  const stranger = () => throwError('unauthorized', 'no credential')
  const code = async (response: Promise<Response>) => (await errorOf(await response)).code
  const spoilt = { ...host, origin: 'https://evil.example', 'content-length': '99999999' }

  test('checks the origin, then the length, then the credential, then the input', async () => {
    const { send } = createTestApp({ authenticate: stranger })
    const peer = outside.peer
    expect(await code(send('POST /api/v1/notes', { peer, headers: spoilt }))).toBe('forbidden_origin')
    const { origin: _, ...long } = spoilt
    expect(await code(send('POST /api/v1/notes', { peer, headers: long }))).toBe('payload_too_large')
    for (const line of [
      'POST /api/v1/notes',
      'GET /api/v1/notes?limit=0',
      'GET /api/v1/workspaces/nope/records/a',
      `GET ${workspace}/records/%ZZ`,
      `DELETE ${workspace}/`,
      'GET /api/v1/nowhere/%ZZ',
      'GET /api/v1/nowhere',
    ])
      expect(await code(send(line, { peer, headers: host })), line).toBe('unauthorized')
    expect(await code(send('GET /nowhere', { peer, headers: host }))).toBe('not_found')
  })

  test('S1-02: checks the scope before the input', async () => {
    const subject: Subject = {
      id: 'key',
      label: null,
      type: 'apiKey',
      workspaceScopes: [workspaceId],
      scopes: ['read'],
      role: 'viewer',
      principalId: 'key',
      keyLifetimeMaxMs: null,
    }
    const { send } = createTestApp({ auth: verifiedContext('apiKey', subject) })
    expect(await code(send('GET /api/v1/workspaces/nope/records/a?x=%ZZ'))).toBe('forbidden')
    expect(await code(send(`DELETE ${workspace}?x=%ZZ`))).toBe('forbidden')
    expect(await code(send(`GET ${workspace}/records/a?x=%ZZ`))).toBe('validation_error')
  })

  test('HEAD follows the access rules of GET, without an origin check', async () => {
    const { send, audited } = createTestApp({ authenticate: stranger })
    const foreign = initFrom('192.0.2.1', { origin: 'https://evil.example', cookie: 'wb_session=x' })
    for (const line of ['HEAD /api/v1/notes', `HEAD ${workspace}/records/a`, 'HEAD /api/v1/nowhere']) {
      const refused = await send(line, foreign)
      expect([refused.status, await refused.text()], line).toEqual([401, ''])
    }
    expect(audited.map(({ action }) => action)).toEqual(Array(3).fill('auth.api_denied'))
    expect(
      (await createLimitedApp().send('HEAD /api/v1/notes', foreign)).headers.get('x-ratelimit-remaining'),
    ).toBe('2')
  })

  test('OPTIONS reveals no routes to anonymous callers, and allows no other origin', async () => {
    const preflight = initFrom('192.0.2.1', {
      origin: 'https://evil.example',
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'authorization',
    })
    const refused = await createTestApp({ authenticate: stranger }).send('OPTIONS /api/v1/notes', preflight)
    expect(refused.status).toBe(401)
    const unknown = await createTestApp().send('OPTIONS /api/v1/notes', preflight)
    expect(unknown.status).toBe(404)
    expect([...unknown.headers.keys()].filter(name => /^(access-control|allow)/.test(name))).toEqual([])
  })

  test('does not read the body of a route without one', async () => {
    const body = new ReadableStream({ pull: () => expect.fail('the body was read') }, { highWaterMark: 0 })
    const response = await createTestApp().send(`DELETE ${workspace}`, {
      body,
      duplex: 'half',
    } as TestRequestInit)
    expect(response.status).toBe(204)
  })
})

describe('the request facts for authentication', () => {
  async function presentedTo(init: TestRequestInit, changed: Parameters<typeof createTestApp>[0] = {}) {
    const seen: RequestCredentials[] = []
    const authenticate = (presented: RequestCredentials) => {
      seen.push(presented)
      return throwError('unauthorized')
    }
    await createTestApp({ ...changed, authenticate }).send('GET /api/v1/notes', init)
    const [presented] = seen
    return { address: presented!.client, origin: presented!.siteOrigin() }
  }
  const forwarded = {
    'x-forwarded-for': '198.51.100.1',
    'x-forwarded-proto': 'https',
    'x-forwarded-host': 'wb.corp.example',
  }
  const trusting = (trustProxyHeaders: boolean | string[]) => ({ settings: { trustProxyHeaders } })

  test('S2.2-28 S2.5-04: X-Forwarded headers of an untrusted peer have no effect', async () => {
    for (const trusted of [false, ['10.0.0.0/8']])
      expect(await presentedTo(initFrom('192.0.2.1', forwarded), trusting(trusted))).toEqual({
        address: '192.0.2.1',
        origin: 'http://localhost:8787',
      })
  })

  test('S2.2-28 S2.5-04: X-Forwarded headers of a trusted proxy set client, scheme and host', async () => {
    for (const trusted of [true, ['192.0.2.0/24']])
      expect(await presentedTo(initFrom('192.0.2.1', forwarded), trusting(trusted))).toEqual({
        address: '198.51.100.1',
        origin: 'https://wb.corp.example',
      })
    const { 'x-forwarded-host': _, ...noHost } = forwarded
    expect((await presentedTo(initFrom('192.0.2.1', noHost), trusting(true))).origin).toBe(
      'https://localhost:8787',
    )
  })

  test('publicOrigin overrides the headers of a proxy', async () => {
    const origin = { ...settings.origin, publicOrigin: 'https://Public.example:443/' }
    const { origin: site } = await presentedTo(initFrom('192.0.2.1', forwarded), {
      settings: { origin, trustProxyHeaders: true },
    })
    expect(site).toBe('https://public.example')
  })

  test('the origin over TLS is https, in lower case and without a default port', async () => {
    const init = { peer: { encrypted: true, address: '192.0.2.1' }, headers: { host: 'LOCALHOST:443' } }
    expect((await presentedTo(init)).origin).toBe('https://localhost')
  })

  test('a request in process has no address', async () => {
    expect(await presentedTo({})).toEqual({ address: '', origin: 'http://localhost' })
  })

  test("accepts the page's origin behind a trusted proxy, and rejects forged forwarding headers", async () => {
    const page = { ...forwarded, origin: 'https://wb.corp.example', 'content-type': 'application/json' }
    const post = (trusted: boolean | string[]) =>
      createTestApp(trusting(trusted)).send('POST /api/v1/notes', {
        ...initFrom('192.0.2.1', page),
        body: '{"name":"x"}',
      })
    expect((await post(true)).status).toBe(201)
    expect((await post(['10.0.0.1'])).status).toBe(403)
    expect((await post(false)).status).toBe(403)
  })
})

describe('S6-04: a denied request writes one record', () => {
  const denied = (changed: Parameters<typeof createTestApp>[0], line: string, init?: TestRequestInit) => {
    const testApp = createTestApp(changed)
    return testApp.send(line, init).then(() => testApp.audited)
  }
  const credentials = { authorization: 'Bearer wb_live_canary', cookie: 'wb_session=canary' }

  test('a 401 record has the credential type, and no part of the credential', async () => {
    const authenticate = () => throwError('unauthorized', 'the token is not known')
    for (const [headers, scheme] of [
      [credentials, 'bearer'],
      [{ authorization: 'bearer' }, 'bearer'],
      [{ authorization: 'Basic Y2FuYXJ5' }, 'other'],
      [{ cookie: 'wb_session=canary' }, 'session'],
      [{}, 'none'],
    ] as const)
      expect(await denied({ authenticate }, 'GET /api/v1/notes', { headers: { ...headers } })).toEqual([
        {
          action: 'auth.api_denied',
          outcome: 'denied',
          details: { scheme, reason: 'the token is not known' },
        },
      ])
  })

  test('S6-05: a scope denial has requiredScope, from the access check and from a handler', async () => {
    const subject: Subject = {
      id: 'key',
      label: 'ci',
      type: 'apiKey',
      workspaceScopes: [workspaceId],
      scopes: ['write'],
      role: null,
      principalId: 'key',
      keyLifetimeMaxMs: null,
    }
    const auth = verifiedContext('apiKey', subject)
    expect(await denied({ auth }, `DELETE ${workspace}`)).toEqual([
      {
        action: 'auth.api_denied',
        outcome: 'denied',
        workspaceId,
        details: {
          requiredScope: 'manage:workspace',
          reason: "authenticated subject is missing required scope 'manage:workspace'",
        },
      },
    ])
    const show = () => {
      throw new WbError('forbidden', "a key cannot be given the scope 'manage'", { requiredScope: 'manage' })
    }
    expect(await denied({ auth, notes: { show } }, `GET ${workspace}/records/a`)).toMatchObject([
      { action: 'auth.api_denied', workspaceId, details: { requiredScope: 'manage' } },
    ])
  })

  test('denials of unknown routes are recorded like those of known routes', async () => {
    const authenticate = () => throwError('unauthorized')
    expect(await denied({ authenticate }, 'GET /api/v1/nowhere')).toHaveLength(1)
    expect(await denied({ authenticate }, `DELETE ${workspace}/`)).toHaveLength(1)
    expect(await denied({ authenticate }, 'GET /nowhere')).toEqual([])
  })

  test('other errors write no record', async () => {
    const headers = { ...host, 'content-type': 'application/json' }
    expect(await denied({}, 'POST /api/v1/notes', { ...outside, headers, body: '{}' })).toEqual([])
    expect(await denied({}, 'GET /api/v1/nowhere')).toEqual([])
    expect(await denied({}, 'GET /api/v1/notes', { ...outside, headers: { host: 'evil.example' } })).toEqual(
      [],
    )
    expect(await denied({}, 'GET /api/v1/notes')).toEqual([])
  })

  test('S5.9-01 S5.9-02 S5.9-03: no credential appears in a response, a log line or a record', async () => {
    const failures = [
      () => throwError('unauthorized'),
      () => throwError('forbidden'),
      () => throwError('rate_limited'),
      () => {
        throw new Error('defect')
      },
    ]
    for (const authenticate of failures) {
      const { send, logged, audited } = createTestApp({ authenticate })
      for (const [line, headers] of [
        ['GET /api/v1/notes', credentials],
        ['POST /api/v1/notes', { ...credentials, authorization: 'Basic canary' }],
        ['POST /api/v1/notes', { cookie: 'a=canary', origin: 'canary', referer: 'https://x.example/canary' }],
        ['POST /api/v1/notes?token=canary', { cookie: 'a=canary', referer: 'https://x.example/canary' }],
        ['GET /api/v1/nowhere?token=canary', credentials],
      ] as const) {
        const response = await send(line, { ...outside, headers: { ...host, ...headers } })
        expect(await response.text(), line).not.toContain('canary')
      }
      expect(JSON.stringify([logged, audited])).not.toContain('canary')
    }
  })
})

describe('S7.3-forbidden_origin: a rejected origin is recorded', () => {
  const foreign = initFrom('192.0.2.1', { origin: 'https://evil.example', cookie: 'wb_session=canary' })

  test.each([
    ['POST /api/v1/notes?token=canary', '/api/v1/notes'],
    ['DELETE /api/v1/nowhere', '/api/v1/nowhere'],
    ['POST /auth/logout', '/auth/logout'],
  ])('%s', async (line, path) => {
    const { send, audited } = createTestApp()
    expect((await send(line, foreign)).status).toBe(403)
    expect(audited).toEqual([
      {
        action: 'auth.csrf_rejected',
        outcome: 'failure',
        details: { reason: `${line.split(' ')[0]} ${path}: the Origin is https://evil.example` },
      },
    ])
  })

  test('other paths and invalid hosts write no record', async () => {
    const { send, audited } = createTestApp()
    expect((await send('POST /nowhere', foreign)).status).toBe(403)
    expect((await send('POST /api/v1/notes', initFrom('192.0.2.1', { host: 'evil.example' }))).status).toBe(
      403,
    )
    expect(audited).toEqual([])
  })

  test('truncates a long path, and redacts a token in it', async () => {
    const { send, audited } = createTestApp()
    await send(`POST /api/v1/${'x'.repeat(9_000)}`, foreign)
    await send('POST /api/v1/wb_live_canary', foreign)
    expect(audited[0]!.details!.reason!.length).toBeLessThanOrEqual(500)
    expect(audited[1]!.details!.reason).toBe('POST /api/v1/[redacted]: the Origin is https://evil.example')
  })
})
