import { describe, expect, test } from 'vitest'
import { browse, clients, type RunningProvider } from '../../harness/identity-provider.ts'
import type { TestResponse, TestRuntime } from '../../harness/runtime.ts'
import {
  codeOf,
  interceptProvider,
  OffsetClock,
  openSignInFixture,
  type SignInFixture,
} from './sign-in-fixture.ts'

const tokenPath = '/token'
const deviceGrant = 'urn:ietf:params:oauth:grant-type:device_code'

interface Started {
  readonly device_code: string
  readonly user_code: string
  readonly verification_uri_complete: string
}

async function start({ send }: Pick<TestRuntime, 'send'>): Promise<Started> {
  const answer = await send('POST /auth/device/authorize')
  expect(answer.status, answer.text).toBe(200)
  return answer.body as unknown as Started
}

/** Signs in a device and returns its tokens. */
async function signIn(
  { opened }: Pick<SignInFixture, 'opened'>,
  login = 'alice',
): Promise<Record<string, unknown>> {
  const { device_code, verification_uri_complete } = await start(opened)
  await browse(verification_uri_complete, { login })
  const answer = await opened.send('POST /auth/device/token', { device_code })
  expect(answer.status, answer.text).toBe(200)
  return answer.body
}

function tokenResponse(token: string, more: object = {}) {
  return { status: 200, body: JSON.stringify({ access_token: token, token_type: 'Bearer', ...more }) }
}

function usedRefreshTokens({ requests }: RunningProvider): (string | null)[] {
  return requests.map(({ form }) => form.get('refresh_token')).filter(token => token !== null)
}

describe('device sign-in', () => {
  test('S9-03 S4.3-14 S4.3-15: starts without a body, and returns the response of the provider', async () => {
    const { provider, opened } = await openSignInFixture()
    const answer = await opened.send('POST /auth/device/authorize')
    expect(answer.status).toBe(200)
    expect(answer.headers.get('cache-control')).toBe('no-store')
    expect(answer.body).toEqual({
      device_code: expect.stringMatching(/^[\w-]{20,}$/),
      user_code: expect.stringMatching(/^[A-Z-]+$/),
      verification_uri: `${provider.issuer}/device`,
      verification_uri_complete: expect.stringContaining(`${provider.issuer}/device?user_code=`),
      expires_in: 600,
      interval: 5,
    })
    const [asked] = provider.requests.filter(({ path }) => path === '/device/auth')
    expect(asked!.form.get('client_id')).toBe(clients.public.id)
    expect(asked!.form.get('scope')).toMatch(/\bopenid\b/)
  })

  test('S4.3-15: passes on unknown fields and the interval of the provider', async () => {
    const { provider, opened } = await openSignInFixture()
    const envelope = {
      device_code: 'code',
      user_code: 'AAAA',
      verification_uri: 'https://idp.example/device',
      expires_in: 60,
      interval: 11,
      message: 'type AAAA',
    }
    interceptProvider(provider, ({ path }) =>
      path === '/device/auth' ? { status: 200, body: JSON.stringify(envelope) } : undefined,
    )
    expect((await opened.send('POST /auth/device/authorize')).body).toEqual(envelope)
  })

  test('fails with device_authorize_failed if the provider rejects the start', async () => {
    const { provider, opened } = await openSignInFixture()
    interceptProvider(provider, ({ path }) =>
      path === '/device/auth' ? { status: 400, body: '{"error":"invalid_scope"}' } : undefined,
    )
    const answer = await opened.send('POST /auth/device/authorize')
    expect([answer.status, codeOf(answer)]).toEqual([502, 'device_authorize_failed'])
  })

  test('S4.3-16 S4.3-17 S4.3-23: is pending until it is approved, then returns tokens that the API accepts', async () => {
    const { provider, opened } = await openSignInFixture()
    const { device_code, verification_uri_complete } = await start(opened)
    const pending = await opened.send('POST /auth/device/token', { device_code })
    expect([pending.status, codeOf(pending)]).toEqual([400, 'authorization_pending'])
    expect(pending.headers.get('cache-control')).toBe('no-store')
    await browse(verification_uri_complete)
    const answer = await opened.send('POST /auth/device/token', { device_code })
    expect(answer.status).toBe(200)
    expect(answer.headers.get('cache-control')).toBe('no-store')
    expect(answer.body).toMatchObject({
      access_token: expect.stringMatching(/^[\w-]+\.[\w-]+\.[\w-]+$/),
      token_type: expect.stringMatching(/^bearer$/i),
      expires_in: expect.any(Number),
      refresh_token: expect.stringMatching(/^v2\.[\w-]{16}\.[\w-]+\.[\w-]{22}$/),
      scope: expect.any(String),
    })
    const requests = provider.requests.filter(({ path }) => path === tokenPath)
    expect(requests.map(({ form }) => form.get('grant_type'))).toEqual([deviceGrant, deviceGrant])
    const self = await opened.send('GET /auth/me', undefined, {
      authorization: `Bearer ${answer.body.access_token}`,
    })
    expect(self.body).toMatchObject({ id: 'alice', type: 'oidc', canRefresh: false })
    const again = await opened.send('POST /auth/device/token', { device_code })
    expect([again.status, codeOf(again)]).toEqual([400, 'invalid_grant'])
  })

  test('S4.3-19: reports a denial', async () => {
    const { opened } = await openSignInFixture()
    const { device_code, verification_uri_complete } = await start(opened)
    await browse(verification_uri_complete, { deny: true })
    const answer = await opened.send('POST /auth/device/token', { device_code })
    expect([answer.status, codeOf(answer)]).toEqual([400, 'access_denied'])
  })

  test('S4.3-20: reports an expired code', async () => {
    const { opened } = await openSignInFixture({ provider: { deviceCodeSeconds: 1 } })
    const { device_code } = await start(opened)
    await expect
      .poll(async () => codeOf(await opened.send('POST /auth/device/token', { device_code })), {
        timeout: 10_000,
      })
      .toBe('expired_token')
  })

  test.each(['authorization_pending', 'slow_down', 'access_denied', 'expired_token', 'invalid_grant'])(
    'S4.3-17 S4.3-18 S4.3-19 S4.3-20: passes on %s',
    async code => {
      const { provider, opened } = await openSignInFixture()
      interceptProvider(provider, ({ path }) =>
        path === tokenPath ? { status: 400, body: JSON.stringify({ error: code }) } : undefined,
      )
      const answer = await opened.send('POST /auth/device/token', { device_code: 'x' })
      expect([answer.status, codeOf(answer)]).toEqual([400, code])
    },
  )

  test('reports other errors as device_token_failed, without the text of the provider', async () => {
    const { provider, opened } = await openSignInFixture()
    interceptProvider(provider, ({ path }) =>
      path === tokenPath
        ? { status: 401, body: '{"error":"invalid_client","error_description":"hush"}' }
        : undefined,
    )
    const answer = await opened.send('POST /auth/device/token', { device_code: 'x' })
    expect([answer.status, codeOf(answer)]).toEqual([502, 'device_token_failed'])
    expect(answer.text).not.toMatch(/hush|invalid_client/)
  })

  test('does not send an overlong device code to the provider', async () => {
    const { provider, opened } = await openSignInFixture()
    const sent = async (chars: number) =>
      codeOf(await opened.send('POST /auth/device/token', { device_code: 'x'.repeat(chars) }))
    expect([await sent(4_097), provider.count(tokenPath)]).toEqual(['invalid_grant', 0])
    expect([await sent(4_096), provider.count(tokenPath)]).toEqual(['invalid_grant', 1])
  })

  test('S4.3-24: withholds a token that the API would reject', async () => {
    const { opened } = await openSignInFixture({ oidc: { audience: 'https://someone-else.example' } })
    const { device_code, verification_uri_complete } = await start(opened)
    await browse(verification_uri_complete)
    const answer = await opened.send('POST /auth/device/token', { device_code })
    expect([answer.status, codeOf(answer)]).toEqual([502, 'device_token_failed'])
    expect(answer.text).not.toMatch(/eyJ/)
  })

  test.each([{}, { device_code: '' }, { device_code: 1 }, []])(
    'rejects %j with invalid_request',
    async body => {
      const { opened } = await openSignInFixture()
      for (const line of ['POST /auth/device/token', 'POST /auth/device/refresh']) {
        const answer = await opened.send(line, body)
        expect([answer.status, codeOf(answer)]).toEqual([400, 'invalid_request'])
      }
    },
  )

  test('S4.3-21 S4.3-22 S7.2-10: fails with 501 if the provider has no device endpoint', async () => {
    const { opened } = await openSignInFixture({ provider: { device: false } })
    for (const [line, body] of [
      ['POST /auth/device/authorize', undefined],
      ['POST /auth/device/token', { device_code: 'x' }],
      ['POST /auth/device/refresh', { refresh_token: 'x' }],
    ] as const) {
      const answer = await opened.send(line, body)
      expect([answer.status, codeOf(answer)]).toEqual([501, 'device_flow_not_supported'])
    }
    const { body } = await opened.send('GET /auth/config')
    expect(body).toMatchObject({
      modes: { login: true, device: false },
      deviceTokenPath: '/auth/device/token',
    })
  })

  test('fails with 503 if the provider is down', async () => {
    const { provider, opened } = await openSignInFixture()
    const { device_code } = await start(opened)
    await provider.stop()
    for (const [line, body] of [
      ['POST /auth/device/authorize', undefined],
      ['POST /auth/device/token', { device_code }],
    ] as const) {
      const answer = await opened.send(line, body)
      expect([answer.status, codeOf(answer)]).toEqual([503, 'identity_provider_unavailable'])
    }
  })

  test('returns no refresh token if the provider issues none', async () => {
    const { provider, opened } = await openSignInFixture()
    const token = await provider.sign()
    interceptProvider(provider, ({ path }) => (path === tokenPath ? tokenResponse(token) : undefined))
    const answer = await opened.send('POST /auth/device/token', { device_code: 'x' })
    expect(answer.body).toEqual({ access_token: token, token_type: expect.stringMatching(/^bearer$/i) })
  })
})

describe('device token refresh [security rule 13]', () => {
  test('returns new tokens and a new sealed refresh token', async () => {
    const staged = await openSignInFixture()
    const first = await signIn(staged)
    const answer = await staged.opened.send('POST /auth/device/refresh', {
      refresh_token: first.refresh_token,
    })
    expect(answer.status).toBe(200)
    expect(answer.headers.get('cache-control')).toBe('no-store')
    expect(answer.body.access_token).not.toBe(first.access_token)
    expect(answer.body.refresh_token).toMatch(/^v2\./)
    expect(answer.body.refresh_token).not.toBe(first.refresh_token)
    const again = await staged.opened.send('POST /auth/device/refresh', {
      refresh_token: answer.body.refresh_token,
    })
    expect(again.status).toBe(200)
    expect(usedRefreshTokens(staged.provider)).toHaveLength(2)
    expect(first.refresh_token).not.toContain(usedRefreshTokens(staged.provider)[0])
  })

  test('works for two processes that send one token, at the same time or later', async () => {
    const clock = new OffsetClock()
    const staged = await openSignInFixture({ clock })
    const { refresh_token } = await signIn(staged)
    const ask = (token: unknown) => staged.opened.send('POST /auth/device/refresh', { refresh_token: token })
    const answers: TestResponse[] = await Promise.all([ask(refresh_token), ask(refresh_token)])
    clock.offsetMs = 20_000
    answers.push(await ask(refresh_token))
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1)
    expect(usedRefreshTokens(staged.provider)).toHaveLength(1)
    expect((await ask(answers[2]!.body.refresh_token)).status).toBe(200)
    clock.offsetMs = 60_000
    const late = await ask(refresh_token)
    expect([late.status, codeOf(late)]).toEqual([401, 'refresh_failed'])
  })

  test('rejects raw provider tokens, cookies, access tokens and changed values', async () => {
    const staged = await openSignInFixture()
    const { provider, opened } = staged
    const { refresh_token, access_token } = (await signIn(staged)) as Record<string, string>
    await opened.send('POST /auth/device/refresh', { refresh_token })
    const alice = staged.browser()
    await alice.signIn()
    const cookie = alice.cookies.replace('wb_session=', '')
    expect(cookie).toMatch(/^v2\./)
    const before = usedRefreshTokens(provider).length
    const [raw] = usedRefreshTokens(provider)
    const other = await openSignInFixture({ provider, client: { clientId: clients.confidential.id } })
    for (const token of [raw, cookie, access_token, `${refresh_token}A`, refresh_token!.slice(0, -1), 'x']) {
      const answer = await opened.send('POST /auth/device/refresh', { refresh_token: token })
      expect([answer.status, codeOf(answer)]).toEqual([400, 'invalid_grant'])
    }
    const foreign = await other.opened.send('POST /auth/device/refresh', { refresh_token })
    expect([foreign.status, codeOf(foreign)]).toEqual([400, 'invalid_grant'])
    // A value that opens but is invalid is rejected. A value that does not open is anonymous.
    const { opened: anyone } = await openSignInFixture({ provider, auth: { anonymousPolicy: 'allow' } })
    const asCookie = { cookie: `wb_session=${refresh_token}` }
    expect((await anyone.send('GET /api/v1/workspaces', undefined, asCookie)).status).toBe(200)
    expect(usedRefreshTokens(provider)).toHaveLength(before)
  })

  test('fails with refresh_failed if the provider rejects it', async () => {
    const staged = await openSignInFixture()
    const { refresh_token } = await signIn(staged)
    interceptProvider(staged.provider, ({ path }) =>
      path === tokenPath ? { status: 400, body: '{"error":"invalid_grant"}' } : undefined,
    )
    const answer = await staged.opened.send('POST /auth/device/refresh', { refresh_token })
    expect([answer.status, codeOf(answer)]).toEqual([401, 'refresh_failed'])
  })

  test('withholds tokens of another subject, and tokens that the API would reject', async () => {
    const staged = await openSignInFixture()
    const { provider, opened } = staged
    for (const claims of [{ sub: 'mallory' }, { iss: 'https://idp.example' }]) {
      const { refresh_token } = await signIn(staged)
      const token = await provider.sign(claims)
      interceptProvider(provider, ({ path }) => (path === tokenPath ? tokenResponse(token) : undefined))
      const answer = await opened.send('POST /auth/device/refresh', { refresh_token })
      expect([answer.status, codeOf(answer)]).toEqual([401, 'token_validation_failed'])
      expect(answer.text).not.toContain(token)
      provider.intercept = () => undefined
    }
  })

  test('returns the old refresh token if the provider issues no new one', async () => {
    const staged = await openSignInFixture()
    const { provider, opened } = staged
    const { refresh_token } = await signIn(staged)
    const tokens = [await provider.sign({ jti: '1' }), await provider.sign({ jti: '2' })]
    interceptProvider(provider, ({ path }) =>
      path === tokenPath ? tokenResponse(tokens.shift()!) : undefined,
    )
    const first = await opened.send('POST /auth/device/refresh', { refresh_token })
    expect(first.body).toEqual({
      access_token: expect.any(String),
      token_type: expect.any(String),
      refresh_token: expect.stringMatching(/^v2\./),
    })
    const again = await opened.send('POST /auth/device/refresh', { refresh_token: first.body.refresh_token })
    expect(again.status).toBe(200)
    expect(new Set(usedRefreshTokens(provider)).size).toBe(1)
  })

  test('leaves the refresh token valid if the provider is down', async () => {
    const staged = await openSignInFixture()
    const { refresh_token } = await signIn(staged)
    await staged.provider.stop()
    const down = await staged.opened.send('POST /auth/device/refresh', { refresh_token })
    expect([down.status, codeOf(down)]).toEqual([503, 'identity_provider_unavailable'])
    await staged.provider.restart()
    expect((await staged.opened.send('POST /auth/device/refresh', { refresh_token })).status).toBe(200)
  })

  test('S5.9-10: continues after the session secrets are rotated', async () => {
    const staged = await openSignInFixture()
    const { refresh_token } = await signIn(staged)
    const next = await staged.restart({ client: { sessionSecretRef: ['env:SESSION_2', 'env:SESSION_1'] } })
    expect((await next.opened.send('POST /auth/device/refresh', { refresh_token })).status).toBe(200)
  })
})
