import { describe, expect, test } from 'vitest'
import type { AuditActor, AuditEvent } from '../../../src/access/audit-trail.ts'
import type { Caller } from '../../../src/access/caller.ts'
import {
  anonymousContext,
  operatorContext,
  type Subject,
  verifiedContext,
} from '../../../src/access/subject.ts'
import type { ProviderTokens } from '../../../src/auth/oidc/protocol.ts'
import { Sealer } from '../../../src/auth/session/sealer.ts'
import { SessionCookies } from '../../../src/auth/session/session-cookies.ts'
import { describeCaller, SignIn, type SignInDependencies } from '../../../src/auth/session/sign-in.ts'
import { unverifiedSubject } from '../../../src/auth/session/sign-in-trail.ts'
import { WbError } from '../../../src/contract/errors.ts'
import { scopesOfRole } from '../../../src/contract/scopes.ts'
import { open, TestClock } from '../../harness/runtime.ts'

const origin = 'http://localhost'

/** Creates a sign-in with a fake provider. `changes` replaces its methods. */
function createSignIn(
  changes: Partial<SignInDependencies['provider']> = {},
  check?: SignInDependencies['verifier']['check'],
) {
  const clock = new TestClock()
  const events: (AuditEvent & { by: string | null; requestId: string | null })[] = []
  const tell = ({ auth, requestId }: AuditActor, event: AuditEvent) => {
    events.push({ ...event, by: auth.subject?.id ?? null, requestId })
  }
  const audit = {
    failing: false,
    async require(actor: AuditActor | null, event: AuditEvent) {
      if (audit.failing) throw new WbError('control_plane_unavailable', 'the store is gone')
      tell(actor!, event)
    },
    note: (actor: AuditActor | null, event: AuditEvent) => tell(actor!, event),
  }
  const seal = new Sealer([])
  const cookies = new SessionCookies({ sealer: seal, name: 'wb_session' })
  const tokens: ProviderTokens = {
    accessToken: 'access',
    tokenType: 'Bearer',
    refreshToken: 'refresh',
    expiresInSeconds: 60,
  }
  const provider: SignInDependencies['provider'] = {
    keySetUrl: async () => new URL('http://idp.test/jwks'),
    hasDeviceEndpoint: async () => true,
    authorizationUrl: async ({ state }) => new URL(`http://idp.test/auth?state=${state}`),
    exchangeCode: async () => tokens,
    refresh: async () => ({ ...tokens, accessToken: 'access 2', refreshToken: 'refresh 2' }),
    authorizeDevice: async () => ({
      device_code: 'd',
      user_code: 'U',
      verification_uri: 'http://idp.test',
      expires_in: 9,
    }),
    exchangeDeviceCode: async () => tokens,
    discover: async () => {},
    ...changes,
  }
  const signIn = new SignIn('oidc', {
    client: {
      clientId: 'wb',
      clientSecretRef: null,
      redirectPath: '/auth/callback',
      postLogoutPath: '/',
      scopes: ['openid'],
      resource: null,
      sessionCookieName: 'wb_session',
      sessionSecretRef: null,
    },
    provider,
    verifier: { check: check ?? (async () => ({ subject: subject(), expiresAtSeconds: null })) },
    cookies,
    sealer: seal,
    audit,
    clock,
  })
  return { signIn, events, audit, clock, cookies, provider }
}

function subject(more: Partial<Subject> = {}): Subject {
  return { ...unverifiedSubject('alice'), label: 'Alice', workspaceScopes: null, scopes: null, ...more }
}

function caller(cookies: string | null = null, client = '192.0.2.1'): Caller {
  return {
    auth: anonymousContext('oidc'),
    requestId: 'request-1',
    site: { origin, cookies },
    client,
  } as Caller
}

/** Returns the `Cookie` header that a browser sends after the given `Set-Cookie` lines. */
function cookieHeader(lines: readonly string[]): string {
  return lines.map(line => line.slice(0, line.indexOf(';'))).join('; ')
}

/** Starts a login and returns its callback parameters. */
async function startLogin({ signIn }: Pick<ReturnType<typeof createSignIn>, 'signIn'>) {
  const { location, cookies } = await signIn.flows.login.start('/after', caller())
  return { state: new URL(location).searchParams.get('state')!, cookie: cookieHeader(cookies) }
}

async function completeLogin(staged: ReturnType<typeof createSignIn>): Promise<string> {
  const { state, cookie } = await startLogin(staged)
  const { cookies } = await staged.signIn.flows.login.finish({ code: 'c', state }, caller(cookie))
  return cookieHeader(cookies.slice(0, 1))
}

test('S3-09: thousands of logins from twenty addresses do not displace a pending login', async () => {
  const staged = createSignIn()
  const { login } = staged.signIn.flows
  const { state, cookie } = await startLogin(staged)
  for (let at = 0; at < 5_000; at++) await login.start(undefined, caller(null, `198.51.100.${at % 20}`))
  const { location } = await login.finish({ code: 'c', state }, caller(cookie))
  expect(location).toBe('/after')
})

describe('audit trail of sign-ins', () => {
  test('S6-10: records a login with its subject', async () => {
    const staged = createSignIn()
    await completeLogin(staged)
    expect(staged.events).toEqual([
      { action: 'auth.login', details: { scheme: 'oidc' }, by: 'alice', requestId: 'request-1' },
    ])
  })

  test('S6-10: fails a login that cannot be recorded, and the request gets no authenticated caller', async () => {
    const staged = createSignIn()
    const { state, cookie } = await startLogin(staged)
    staged.audit.failing = true
    await expect(
      staged.signIn.flows.login.finish({ code: 'c', state }, caller(cookie)),
    ).rejects.toMatchObject({
      code: 'control_plane_unavailable',
    })
  })

  test.each([
    [{ error: 'access_denied' }, 'access_denied'],
    [{ error: 'hostile text' }, 'invalid_callback'],
    [{ code: 'c', state: 'unknown' }, 'invalid_state'],
  ])('S6-10: records a failed login %j with its reason', async (query, reason) => {
    const { signIn, events } = createSignIn()
    await expect(signIn.flows.login.finish(query, caller())).rejects.toThrow(WbError)
    expect(events).toEqual([
      {
        action: 'auth.login',
        outcome: 'failure',
        details: { scheme: 'oidc', reason },
        by: null,
        requestId: 'request-1',
      },
    ])
  })

  test('S6-10 S6-11: records an internal error without details', async () => {
    const check = () => Promise.reject(new Error('boom at secret-value'))
    const { signIn, events, ...rest } = createSignIn({}, check)
    const { state, cookie } = await startLogin({ signIn, ...rest })
    await expect(signIn.flows.login.finish({ code: 'c', state }, caller(cookie))).rejects.toThrow('boom')
    expect(events.map(({ details }) => details)).toEqual([{ scheme: 'oidc', reason: 'internal_error' }])
  })

  test('S6-10: records a code that the provider rejects', async () => {
    const staged = createSignIn({ exchangeCode: async () => ({ errorCode: 'invalid_grant' }) })
    const { state, cookie } = await startLogin(staged)
    const done = staged.signIn.flows.login.finish({ code: 'c', state }, caller(cookie))
    await expect(done).rejects.toMatchObject({
      code: 'token_exchange_failed',
      facts: { errorCode: 'invalid_grant' },
    })
    expect(staged.events.map(({ details }) => details?.reason)).toEqual(['idp_rejected'])
  })

  test('S6-11: records a refresh, including one shared with an earlier request', async () => {
    const staged = createSignIn()
    const cookie = await completeLogin(staged)
    staged.events.length = 0
    const { session } = staged.signIn.flows
    await Promise.all([session.refresh(caller(cookie)), session.refresh(caller(cookie))])
    expect(staged.events.map(({ action, outcome, by }) => [action, outcome, by])).toEqual([
      ['auth.refresh', undefined, 'alice'],
      ['auth.refresh', undefined, 'alice'],
    ])
  })

  test('S6-11: records a failed refresh with the subject of the cookie', async () => {
    const staged = createSignIn({ refresh: async () => ({ errorCode: 'invalid_grant' }) })
    const cookie = await completeLogin(staged)
    staged.events.length = 0
    await expect(staged.signIn.flows.session.refresh(caller(cookie))).rejects.toThrow()
    await expect(staged.signIn.flows.session.refresh(caller())).rejects.toThrow()
    expect(staged.events.map(({ outcome, details, by }) => [outcome, details?.reason, by])).toEqual([
      ['failure', 'idp_rejected', 'alice'],
      ['failure', 'no_refresh_token', null],
    ])
  })

  test('S6-11: records a session that has become too large as a failed refresh', async () => {
    const refresh = async () => ({ accessToken: 'x'.repeat(20_000), tokenType: 'Bearer' })
    const staged = createSignIn({ refresh })
    const cookie = await completeLogin(staged)
    staged.events.length = 0
    await expect(staged.signIn.flows.session.refresh(caller(cookie))).rejects.toMatchObject({
      code: 'session_too_large',
    })
    expect(staged.events.map(({ details }) => details?.reason)).toEqual(['session_too_large'])
  })

  test('S6-12: records a logout with its subject', async () => {
    const staged = createSignIn()
    const cookie = await completeLogin(staged)
    staged.events.length = 0
    staged.signIn.flows.session.end(caller())
    staged.signIn.flows.session.end(caller('wb_session=v2.x'))
    staged.signIn.flows.session.end(caller(cookie))
    expect(staged.events.map(({ action, by }) => [action, by])).toEqual([['auth.logout', 'alice']])
  })

  test('S6-02: records the start of a device sign-in with the user code', async () => {
    const { signIn, events } = createSignIn()
    await signIn.flows.device.authorize(caller())
    expect(events).toEqual([
      {
        action: 'auth.device.authorize',
        details: { scheme: 'oidc', user_code: 'U' },
        by: null,
        requestId: 'request-1',
      },
    ])
  })

  test.each([
    [{ hasDeviceEndpoint: async () => false }, 'device_flow_not_supported'],
    [{ authorizeDevice: async () => ({ refused: 'invalid_scope' }) }, 'device_authorize_failed'],
    [{ authorizeDevice: async () => ({ device_code: 'd' }) }, 'device_authorize_failed'],
  ])('S6-02: records a failed start of a device sign-in', async (changes, reason) => {
    const { signIn, events } = createSignIn(changes)
    await expect(signIn.flows.device.authorize(caller())).rejects.toMatchObject({ code: reason })
    expect(events.map(({ outcome, details }) => [outcome, details?.reason])).toEqual([['failure', reason]])
  })

  test('S6-03: records the tokens of a device and their refresh with their subject', async () => {
    const { signIn, events } = createSignIn()
    const { refresh_token } = await signIn.flows.device.token('d', caller())
    await signIn.flows.device.refresh(refresh_token!, caller())
    expect(events.map(({ action, outcome, by }) => [action, outcome, by])).toEqual([
      ['auth.device.token', undefined, 'alice'],
      ['auth.device.refresh', undefined, 'alice'],
    ])
    expect(JSON.stringify(events)).not.toMatch(/access|refresh [0-9]|v2\./)
  })

  test('S6-03: omits pending polls, and records any other failed poll', async () => {
    let errorCode = ''
    const { signIn, events } = createSignIn({ exchangeDeviceCode: async () => ({ errorCode }) })
    for (errorCode of ['authorization_pending', 'slow_down', 'access_denied', 'expired_token', 'odd'])
      await expect(signIn.flows.device.token('d', caller())).rejects.toThrow(WbError)
    expect(events.map(({ details }) => details?.reason)).toEqual([
      'access_denied',
      'expired_token',
      'device_token_failed',
    ])
  })

  test('S6-03: records a failed refresh of a device', async () => {
    const { signIn, events } = createSignIn({ refresh: async () => ({ errorCode: 'invalid_grant' }) })
    const { refresh_token } = await signIn.flows.device.token('d', caller())
    events.length = 0
    await expect(signIn.flows.device.refresh(refresh_token!, caller())).rejects.toThrow()
    await expect(signIn.flows.device.refresh('v2.x.y.z', caller())).rejects.toThrow()
    expect(events.map(({ action, details, by }) => [action, details?.reason, by])).toEqual([
      ['auth.device.refresh', 'idp_rejected', 'alice'],
      ['auth.device.refresh', 'invalid_grant', null],
    ])
  })
})

describe('available sign-in methods', () => {
  const none = {
    loginPath: null,
    refreshPath: null,
    deviceAuthorizePath: null,
    deviceTokenPath: null,
    deviceRefreshPath: null,
  }

  test.each([
    ['disabled', false, false],
    ['apiKey', true, false],
    ['oidc', false, true],
    ['any', true, true],
  ] as const)('S4.3-02 S4.3-03: mode %s without a client', async (mode, apiKey, oidc) => {
    expect(await new SignIn(mode, undefined).config()).toEqual({
      modes: { apiKey, oidc, login: false, device: false },
      ...none,
    })
  })

  test.each([true, false])(
    'S4.3-02 S4.3-03 S4.3-04 S4.3-05 S4.3-22: with a client, device endpoint: %s',
    async has => {
      const { signIn } = createSignIn({ hasDeviceEndpoint: async () => has })
      expect(await signIn.config()).toEqual({
        modes: { apiKey: false, oidc: true, login: true, device: has },
        loginPath: '/auth/login',
        refreshPath: '/auth/refresh',
        deviceAuthorizePath: '/auth/device/authorize',
        deviceTokenPath: '/auth/device/token',
        deviceRefreshPath: '/auth/device/refresh',
      })
    },
  )

  test('keep their last known state while the provider is down', async () => {
    let isDown = true
    const { signIn } = createSignIn({
      hasDeviceEndpoint: () => (isDown ? Promise.reject(new Error('down')) : Promise.resolve(true)),
    })
    expect((await signIn.config()).modes.device).toBe(false)
    isDown = false
    expect((await signIn.config()).modes.device).toBe(true)
    isDown = true
    expect((await signIn.config()).modes.device).toBe(true)
  })

  test('do not wait for a provider that hangs', async () => {
    const { signIn, clock } = createSignIn({ hasDeviceEndpoint: () => new Promise(() => {}) })
    const config = signIn.config()
    clock.advance(1_000)
    expect((await config).modes.device).toBe(false)
  })

  test('S4.3-01: without a client, only the two informational routes exist', async () => {
    for (const mode of ['disabled', 'apiKey'] as const) {
      const { send } = await open({ config: { auth: { mode } } })
      for (const [line, json] of [
        ['GET /auth/login', undefined],
        ['GET /auth/callback?code=a&state=b', undefined],
        ['POST /auth/refresh', undefined],
        ['POST /auth/logout', undefined],
        ['POST /auth/device/authorize', undefined],
        ['POST /auth/device/token', { device_code: 'x' }],
        ['POST /auth/device/refresh', { refresh_token: 'x' }],
      ] as const) {
        const answer = await send(line, json)
        expect([answer.status, answer.body.error], line).toEqual([
          404,
          expect.objectContaining({ code: 'not_configured' }),
        ])
        expect(answer.headers.get('cache-control')).toBe('no-store')
      }
      expect((await send('GET /auth/config')).status).toBe(200)
      const self = await send('GET /auth/me', undefined, { cookie: 'wb_session=v2.x.y.z' })
      expect([self.status, self.headers.get('cache-control')]).toEqual([401, 'no-store'])
      expect((await send('PATCH /auth/login')).headers.get('cache-control')).toBe('no-store')
    }
  })

  test('S4.3-08: show the owner of the data directory as an operator in every mode', async () => {
    const { sendAsOperator } = await open()
    expect((await sendAsOperator('GET /auth/me')).body).toMatchObject({
      type: 'system',
      role: null,
      scopes: null,
    })
  })
})

describe('the current subject', () => {
  const session = { expiresAtSeconds: 7, canRefresh: true }

  test.each([
    [['read'], 'viewer'],
    [['read', 'write'], 'editor'],
    [['read', 'write', 'manage'], 'admin'],
    [['write'], null],
    [['read', 'write:kb'], null],
    [['read', 'write', 'tools:invoke'], null],
  ] as const)('S2.6-06: a key with %j has the role %s', (scopes, role) => {
    const auth = verifiedContext('apiKey', subject({ type: 'apiKey', scopes, workspaceScopes: ['w'] }))
    expect(describeCaller(auth)).toEqual({
      id: 'alice',
      label: 'Alice',
      type: 'apiKey',
      workspaceScopes: ['w'],
      role,
      scopes,
      expiresAt: null,
      canRefresh: false,
    })
  })

  test('S2.6-05 S2.6-07 S2.6-08 S2.6-09: without scopes has all of them and no role', () => {
    expect(describeCaller(verifiedContext('oidc', subject(), session))).toMatchObject({
      role: null,
      scopes: null,
      workspaceScopes: null,
      expiresAt: 7,
      canRefresh: true,
    })
    expect(describeCaller(operatorContext('disabled', 'x'))).toMatchObject({
      role: null,
      scopes: null,
      expiresAt: null,
    })
  })

  test('S2.6-05: shows a mapped role with its scopes', () => {
    const mapped = subject({ role: 'editor', scopes: scopesOfRole.editor })
    expect(describeCaller(verifiedContext('oidc', mapped))).toMatchObject({
      role: 'editor',
      scopes: ['read', 'write'],
    })
  })

  test('S4.3-08: is null for an anonymous caller', () => {
    expect(() => describeCaller(anonymousContext('oidc'))).toThrow(
      expect.objectContaining({ code: 'unauthorized' }),
    )
  })
})

describe('client configuration', () => {
  const config = (redirectPath: string) => ({
    auth: {
      mode: 'oidc',
      oidc: { issuer: 'http://127.0.0.1:9', audience: 'a', client: { clientId: 'c', redirectPath } },
    },
  })

  test.each(['http://', 'ftp://host/x', 'data:x'])(
    'S2.2-27: the redirect path %s prevents startup',
    async redirectPath => {
      await expect(open({ config: config(redirectPath) })).rejects.toMatchObject({
        code: 'validation_error',
        message: expect.stringContaining('auth.oidc.client.redirectPath'),
      })
    },
  )

  test('S2.2-25: a client without a clientId prevents startup', async () => {
    const oidc = { issuer: 'http://127.0.0.1:9', audience: 'a', client: {} }
    await expect(open({ config: { auth: { mode: 'oidc', oidc } } })).rejects.toThrow(/clientId/)
  })
})
