import { createHash, randomBytes } from 'node:crypto'
import { createServer } from 'node:net'
import { describe, expect, test } from 'vitest'
import type { OidcClient, ProviderTokens } from '../../../src/auth/oidc/protocol.ts'
import type { IdentityProvider } from '../../../src/auth/oidc/provider.ts'
import {
  audience,
  browse,
  clients,
  type ProviderOptions,
  startProvider,
} from '../../harness/identity-provider.ts'
import { waitUntil } from '../../harness/runtime.ts'
import { createOidcFixture, oidcClient } from './oidc-fixture.ts'

const redirectUri = 'http://localhost/auth/callback'

async function startWithProvider(
  options: ProviderOptions = {},
  client: Partial<OidcClient> = {},
  clientSecret?: string,
) {
  const idp = await startProvider(options)
  return { idp, ...createOidcFixture(idp, { client: oidcClient(client) }, { clientSecret }) }
}

const { confidential } = clients
const asConfidential = { clientId: confidential.id }

interface SignInOptions {
  deny?: boolean
  login?: string
  /** Changes the callback URL before it reaches the runtime. */
  tamper?: (callback: URL) => void
  nonce?: string
  verifier?: string
}

/** Signs in a browser like the routes do, from the authorization URL to the tokens. */
async function signIn(provider: IdentityProvider, way: SignInOptions = {}) {
  const random = () => randomBytes(32).toString('base64url')
  const [state, nonce, codeVerifier] = [random(), random(), random()]
  const codeChallenge = createHash('sha256').update(codeVerifier).digest('base64url')
  const url = await provider.authorizationUrl({ redirectUri, state, nonce, codeChallenge })
  const arrived = await browse(url, { ...way, stopAt: redirectUri })
  const callbackUrl = new URL(arrived.url)
  way.tamper?.(callbackUrl)
  return provider.exchangeCode({
    callbackUrl,
    redirectUri,
    state,
    nonce: way.nonce ?? nonce,
    codeVerifier: way.verifier ?? codeVerifier,
  })
}

const expectTokens = (answer: object): ProviderTokens => {
  expect(answer).toMatchObject({ accessToken: expect.any(String), tokenType: 'Bearer' })
  return answer as ProviderTokens
}

const unavailable = { name: 'WbError', code: 'identity_provider_unavailable', status: 503 }

describe('browser sign-in', () => {
  test('S5.7-06 S2.2-26: works for a public client with PKCE only, and the token is valid', async () => {
    const { idp, provider, verifier } = await startWithProvider()
    const tokens = expectTokens(await signIn(provider, { login: 'bob' }))
    expect((await verifier.check(tokens.accessToken)).subject).toMatchObject({
      id: 'bob',
      label: 'bob@example.test',
    })
    expect(tokens).toMatchObject({ expiresInSeconds: 300, refreshToken: expect.any(String) })
    expect(Object.keys(tokens)).not.toContain('idToken')
    const exchange = idp.requests.find(({ path }) => path === '/token')!
    expect(exchange.authorization).toBeUndefined()
    expect(Object.fromEntries(exchange.form)).toMatchObject({
      client_id: clients.public.id,
      redirect_uri: redirectUri,
      code_verifier: expect.any(String),
    })
  })

  test('S2.2-30 S5.7-02: sends the provider the required parameters and no secrets of the runtime', async () => {
    const { idp, provider } = await startWithProvider({}, { scopes: ['openid', 'groups'] })
    const url = await provider.authorizationUrl({
      redirectUri,
      state: 's',
      nonce: 'n',
      codeChallenge: 'c',
    })
    expect(url.origin + url.pathname).toBe(`${idp.issuer}/auth`)
    expect(Object.fromEntries(url.searchParams)).toEqual({
      client_id: clients.public.id,
      response_type: 'code',
      redirect_uri: redirectUri,
      scope: 'openid groups offline_access',
      state: 's',
      nonce: 'n',
      code_challenge: 'c',
      code_challenge_method: 'S256',
    })
  })

  test('requests offline_access once, and only if the provider supports it [security rule 13]', async () => {
    const ask = { redirectUri, state: 's', nonce: 'n', codeChallenge: 'c' }
    const without = await startWithProvider({ offline: false })
    const named = await startWithProvider({}, { scopes: ['openid', 'offline_access'] })
    const scopeOf = async ({ provider }: { provider: IdentityProvider }) =>
      (await provider.authorizationUrl(ask)).searchParams.get('scope')
    expect(await scopeOf(without)).toBe('openid profile email')
    expect(await scopeOf(named)).toBe('openid offline_access')
  })

  test('requests JWTs by resource from a provider that otherwise issues opaque tokens [security rule 13]', async () => {
    const strict = { resourceRequired: true }
    const plain = await startWithProvider(strict)
    const opaque = expectTokens(await signIn(plain.provider))
    await expect(plain.verifier.check(opaque.accessToken)).rejects.toMatchObject({ code: 'unauthorized' })
    const naming = await startWithProvider(strict, { resource: audience })
    const { accessToken, refreshToken } = expectTokens(await signIn(naming.provider))
    expect((await naming.verifier.check(accessToken)).subject.id).toBe('alice')
    const again = expectTokens(await naming.provider.refresh(refreshToken!))
    expect((await naming.verifier.check(again.accessToken)).subject.id).toBe('alice')
    const forms = naming.idp.requests.filter(({ path }) => path === '/token').map(({ form }) => form)
    expect(forms.map(form => form.get('resource'))).toEqual([audience, audience])
  })

  test('S2.2-26: sends the client secret in the header', async () => {
    const { idp, provider } = await startWithProvider({}, asConfidential, confidential.secret)
    expectTokens(await signIn(provider))
    const { authorization, form } = idp.requests.find(({ path }) => path === '/token')!
    const expected = Buffer.from(`${confidential.id}:${confidential.secret}`).toString('base64')
    expect(authorization).toBe(`Basic ${expected}`)
    expect(form.has('client_secret')).toBe(false)
  })

  test('form-encodes special characters of the client secret', async () => {
    const { idp, provider } = await startWithProvider({}, { clientId: 'id with/slash' }, 'a:b+c%é~')
    expect(await provider.refresh('r')).toEqual({ errorCode: expect.any(String) })
    const { authorization } = idp.requests.find(({ path }) => path === '/token')!
    const decoded = Buffer.from(authorization!.slice('Basic '.length), 'base64').toString()
    expect(decoded).toBe('id+with%2Fslash:a%3Ab%2Bc%25%C3%A9%7E')
  })

  test('sends the client secret in the body if the provider accepts it only there', async () => {
    const { idp, provider } = await startWithProvider(
      { clientAuth: 'client_secret_post' },
      asConfidential,
      confidential.secret,
    )
    expectTokens(await signIn(provider))
    const { authorization, form } = idp.requests.find(({ path }) => path === '/token')!
    expect(authorization).toBeUndefined()
    expect(form.get('client_secret')).toBe(confidential.secret)
  })

  test('returns the error code of the provider for a wrong client secret', async () => {
    const { provider } = await startWithProvider({}, asConfidential, 'another')
    expect(await signIn(provider)).toEqual({ errorCode: 'invalid_client' })
  })

  test('fails if the user declines at the provider', async () => {
    const { idp, provider } = await startWithProvider()
    expect(await signIn(provider, { deny: true })).toEqual({ errorCode: 'access_denied' })
    expect(idp.count('/token')).toBe(0)
  })

  test.each<[string, SignInOptions]>([
    ['another state', { tamper: url => url.searchParams.set('state', 'another') }],
    ['no state', { tamper: url => url.searchParams.delete('state') }],
    ['two states', { tamper: url => url.searchParams.append('state', 'another') }],
    ['another issuer (RFC 9207)', { tamper: url => url.searchParams.set('iss', 'https://evil.test') }],
    ['no issuer, although the provider sends one', { tamper: url => url.searchParams.delete('iss') }],
    ['no code', { tamper: url => url.searchParams.delete('code') }],
    ['two codes', { tamper: url => url.searchParams.append('code', 'another') }],
    ['an invalid error code', { tamper: url => url.searchParams.set('error', 'x'.repeat(99)) }],
    ['an error code with text', { tamper: url => url.searchParams.set('error', '<b>&') }],
  ])('rejects a callback with %s before contacting the provider', async (_what, way) => {
    const { idp, provider } = await startWithProvider()
    expect(await signIn(provider, way)).toEqual({ errorCode: 'invalid_response' })
    expect(idp.count('/token')).toBe(0)
  })

  test('S2.2-28: sends the provider the original redirect URI, even if a proxy changed it', async () => {
    const { idp, provider } = await startWithProvider()
    const inside = (url: URL) => {
      url.host = 'runtime.internal:8787'
    }
    expectTokens(await signIn(provider, { tamper: inside }))
    expect(idp.requests.find(({ path }) => path === '/token')!.form.get('redirect_uri')).toBe(redirectUri)
  })

  test('rejects an ID token with another nonce', async () => {
    const { provider } = await startWithProvider()
    expect(await signIn(provider, { nonce: 'another' })).toEqual({ errorCode: 'invalid_response' })
  })

  test('needs no ID token without the scope openid', async () => {
    const { provider } = await startWithProvider({}, { scopes: ['email'] })
    expectTokens(await signIn(provider))
    const url = await provider.authorizationUrl({ redirectUri, state: 's', nonce: 'n', codeChallenge: 'c' })
    expect(url.searchParams.has('nonce')).toBe(false)
  })

  test('S5.7-06: rejects another code verifier and a used code', async () => {
    const { provider } = await startWithProvider()
    const verifier = randomBytes(32).toString('base64url')
    expect(await signIn(provider, { verifier })).toEqual({ errorCode: 'invalid_grant' })
    let callback = new URL(redirectUri)
    const tamper = (url: URL) => {
      callback = new URL(url)
    }
    expectTokens(await signIn(provider, { tamper }))
    const replay = {
      tamper: (url: URL) => url.searchParams.set('code', callback.searchParams.get('code')!),
    }
    expect(await signIn(provider, replay)).toEqual({ errorCode: 'invalid_grant' })
  })
})

describe('token refresh', () => {
  test('S5.7-17: uses a refresh token once', async () => {
    const { provider, verifier } = await startWithProvider()
    const first = expectTokens(await signIn(provider))
    const second = expectTokens(await provider.refresh(first.refreshToken!))
    expect(second.refreshToken).not.toBe(first.refreshToken)
    expect((await verifier.check(second.accessToken)).subject.id).toBe('alice')
    expect(await provider.refresh(first.refreshToken!)).toEqual({ errorCode: 'invalid_grant' })
  })

  test('S5.7-21: accepts a provider that issues no refresh token', async () => {
    const { provider } = await startWithProvider({ refresh: false })
    expect(expectTokens(await signIn(provider)).refreshToken).toBeUndefined()
  })

  test('returns only fields of the protocol', async () => {
    const { idp, provider } = await startWithProvider()
    idp.intercept = ({ path }) =>
      path === '/token' ? { status: 200, body: '{"access_token":"t","token_type":"bearer"}' } : undefined
    expect(await provider.refresh('r')).toEqual({ accessToken: 't', tokenType: 'Bearer' })
  })

  test('S2.2-14: applies the configured clock tolerance to ID tokens', async () => {
    const idp = await startProvider()
    const exp = Math.floor(Date.now() / 1_000) - 60
    const idToken = await idp.sign({ aud: clients.public.id, exp }, { typ: 'JWT' })
    const body = JSON.stringify({ access_token: 't', token_type: 'bearer', id_token: idToken })
    idp.intercept = ({ path }) => (path === '/token' ? { status: 200, body } : undefined)
    const within = (clockToleranceSeconds: number) =>
      createOidcFixture(idp, { client: oidcClient(), clockToleranceSeconds }).provider.refresh('r')
    expect(await within(30)).toEqual({ errorCode: 'invalid_response' })
    expectTokens(await within(120))
  })

  test.each([
    ['a token of another type', '{"access_token":"t","token_type":"dpop"}'],
    ['a token of an unknown type', '{"access_token":"t","token_type":"mac"}'],
    ['no token', '{"token_type":"bearer"}'],
    ['a token that is not a string', '{"access_token":7,"token_type":"bearer"}'],
    ['an invalid ID token', '{"access_token":"t","token_type":"bearer","id_token":"x"}'],
  ])('rejects %s', async (_what, body) => {
    const { idp, provider } = await startWithProvider()
    idp.intercept = ({ path }) => (path === '/token' ? { status: 200, body } : undefined)
    const answer = await provider.refresh('r').catch(error => error)
    expect(answer).toEqual({ errorCode: 'invalid_response' })
  })
})

describe('device sign-in', () => {
  test('S4.3-23: returns a valid token after approval in a browser', async () => {
    const { idp, provider, verifier } = await startWithProvider({}, { resource: audience })
    expect(await provider.hasDeviceEndpoint()).toBe(true)
    const envelope = await provider.authorizeDevice()
    expect(envelope).toEqual({
      device_code: expect.any(String),
      user_code: expect.any(String),
      verification_uri: `${idp.issuer}/device`,
      verification_uri_complete: expect.stringContaining(`${idp.issuer}/device?user_code=`),
      expires_in: 600,
    })
    const request = idp.requests.find(({ path }) => path === '/device/auth')!
    expect(Object.fromEntries(request.form)).toEqual({
      client_id: clients.public.id,
      scope: 'openid profile email offline_access',
      resource: audience,
    })
    const { device_code: code, verification_uri_complete: page } = envelope as Record<string, string>
    expect(await provider.exchangeDeviceCode(code!)).toEqual({ errorCode: 'authorization_pending' })
    const before = idp.count('/token')
    await browse(page!, { login: 'carol' })
    const tokens = expectTokens(await provider.exchangeDeviceCode(code!))
    expect((await verifier.check(tokens.accessToken)).subject.id).toBe('carol')
    expect(idp.count('/token')).toBe(before + 1)
    const grant = idp.requests.findLast(({ path }) => path === '/token')!.form
    expect(grant.get('grant_type')).toBe('urn:ietf:params:oauth:grant-type:device_code')
    expect(grant.get('resource')).toBe(audience)
    expect(expectTokens(await provider.refresh(tokens.refreshToken!)).accessToken).not.toBe(
      tokens.accessToken,
    )
  })

  test('is rejected after the user declines in a browser', async () => {
    const { provider } = await startWithProvider()
    const { device_code: code, verification_uri_complete: page } =
      (await provider.authorizeDevice()) as Record<string, string>
    await browse(page!, { deny: true })
    expect(await provider.exchangeDeviceCode(code!)).toEqual({ errorCode: 'access_denied' })
  })

  test('expires with its code', async () => {
    const { provider } = await startWithProvider({ deviceCodeSeconds: 1 })
    const { device_code: code } = (await provider.authorizeDevice()) as { device_code: string }
    const expired = { errorCode: 'expired_token' }
    await waitUntil(
      async () => JSON.stringify(await provider.exchangeDeviceCode(code)) === JSON.stringify(expired),
    )
  })

  test.each([400, 429])('passes on slow_down with status %i', async status => {
    const { idp, provider } = await startWithProvider()
    idp.intercept = ({ path }) => (path === '/token' ? { status, body: '{"error":"slow_down"}' } : undefined)
    expect(await provider.exchangeDeviceCode('d')).toEqual({ errorCode: 'slow_down' })
  })

  test('passes on the interval of the provider', async () => {
    const { idp, provider } = await startWithProvider()
    const envelope = {
      device_code: 'd',
      user_code: 'u',
      verification_uri: 'https://x.test/device',
      expires_in: 60,
      interval: 2,
      extra: { kept: true },
    }
    idp.intercept = ({ path }) =>
      path === '/device/auth' ? { status: 200, body: JSON.stringify(envelope) } : undefined
    expect(await provider.authorizeDevice()).toEqual(envelope)
  })

  test('rejects a client that is not allowed to use it', async () => {
    const { idp, provider } = await startWithProvider()
    idp.intercept = ({ path }) =>
      path === '/device/auth' ? { status: 401, body: '{"error":"unauthorized_client"}' } : undefined
    expect(await provider.authorizeDevice()).toEqual({ errorCode: 'unauthorized_client' })
  })

  test('S7.2-10: is reported as unsupported if the provider has no device endpoint', async () => {
    const { provider } = await startWithProvider({ device: false })
    expect(await provider.hasDeviceEndpoint()).toBe(false)
  })
})

describe('provider failures', () => {
  test.each([
    ['is down', 'down'],
    ['closes the connection', 'reset'],
    ['answers 500', { status: 500 }],
    ['answers 503 with an OAuth error', { status: 503, body: '{"error":"invalid_grant"}' }],
    ['is busy', { status: 429, body: '{"error":"too_many_requests"}' }],
    ['is busy without an error code', { status: 429 }],
    ['reports a server error', { status: 400, body: '{"error":"server_error"}' }],
    ['reports that it is overloaded', { status: 400, body: '{"error":"temporarily_unavailable"}' }],
    ['answers with a web page', { status: 200, body: '<html>', headers: { 'content-type': 'text/html' } }],
    ['answers with nothing', { status: 200, body: '' }],
    ['answers 404', { status: 404 }],
    ['redirects to another site', { status: 302, headers: { location: 'https://portal.test/' } }],
    ['sends an endless response', { status: 200, body: ' '.repeat(1_048_577) }],
  ] as const)('a provider that %s does not reject the refresh, so sessions continue', async (_what, how) => {
    const { idp, provider } = await startWithProvider()
    await provider.discover()
    if (how === 'down') await idp.stop()
    else idp.intercept = () => how
    await expect(provider.refresh('r')).rejects.toMatchObject(unavailable)
    await expect(provider.exchangeDeviceCode('d')).rejects.toMatchObject(unavailable)
    await expect(provider.authorizeDevice()).rejects.toMatchObject(unavailable)
  })

  test('a provider that hangs times out after ten seconds', async () => {
    const { idp, provider, clock } = await startWithProvider()
    await provider.discover()
    idp.intercept = () => 'hang'
    const refresh = provider.refresh('r').catch(error => error)
    await waitUntil(() => idp.count('/token') === 1)
    clock.advance(10_000)
    expect(await refresh).toMatchObject({
      ...unavailable,
      facts: { why: 'it did not respond within 10 seconds' },
    })
  })

  test('the reason is available to the log', async () => {
    const { idp, provider } = await startWithProvider()
    await provider.discover()
    idp.intercept = () => ({ status: 503 })
    await expect(provider.refresh('r')).rejects.toMatchObject({
      facts: { why: 'it responded with status 503' },
    })
  })

  test('the response of the provider is in no message', async () => {
    const { idp, provider } = await startWithProvider()
    await provider.discover()
    idp.intercept = () => ({ status: 500, body: 'canary-of-the-provider' })
    const error = await provider.refresh('canary-of-the-bearer').catch(error => error)
    expect(JSON.stringify({ ...error, message: error.message, stack: error.stack })).not.toContain('canary')
    expect(error.cause).toBeUndefined()
  })
})

describe('discovery', () => {
  const failed = (why: string | RegExp) =>
    expect.objectContaining({
      code: 'validation_error',
      message: typeof why === 'string' ? expect.stringContaining(why) : expect.stringMatching(why),
    })
  const discovery = '/.well-known/openid-configuration'

  test('S5.3-12: reports the setting, the address and the reason if the provider is down', async () => {
    const idp = await startProvider()
    await idp.stop()
    await expect(createOidcFixture(idp).provider.discover()).rejects.toMatchObject({
      code: 'validation_error',
      message: `auth.oidc.issuer: no identity provider was found at ${idp.issuer}${discovery}: it refused the connection`,
    })
  })

  test.each([
    [{ status: 404 }, 'it responded with status 404'],
    [{ status: 500 }, 'it responded with status 500'],
    [{ status: 301, headers: { location: 'https://x.test/' } }, 'it responded with status 301'],
    [{ status: 200, body: '<html>' }, 'its response is not a discovery document'],
    [{ status: 200, body: 'null' }, 'its response is not a discovery document'],
    [{ status: 200, body: '{"issuer":7}' }, 'its response is not a discovery document'],
    [{ status: 200, body: '{"issuer":"https://x.test"}' }, 'its issuer is "https://x.test"'],
    ['reset' as const, 'it cannot be reached'],
  ])('S5.3-12: reports %j with the reason: %s', async (instead, why) => {
    const idp = await startProvider()
    idp.intercept = () => instead
    await expect(createOidcFixture(idp).provider.discover()).rejects.toEqual(failed(why))
  })

  test('S5.3-12: reports an unknown host name, and a port with another protocol', async () => {
    await expect(
      createOidcFixture({ issuer: 'https://no-such-host.invalid' }).provider.discover(),
    ).rejects.toEqual(failed('its host name cannot be resolved'))
    const server = createServer(socket => void socket.end('220 mail\r\n')).listen(0, '127.0.0.1')
    await new Promise(resolve => server.once('listening', resolve))
    const { port } = server.address() as { port: number }
    await expect(
      createOidcFixture({ issuer: `https://127.0.0.1:${port}` }).provider.discover(),
    ).rejects.toEqual(failed(/its certificate is not accepted|it cannot be reached/))
    server.close()
  })

  test('S5.3-12: rejects an issuer that differs by a trailing slash', async () => {
    const { issuer } = await startProvider()
    await expect(createOidcFixture({ issuer: `${issuer}/` }).provider.discover()).rejects.toEqual(
      failed(`at ${issuer}${discovery}: its issuer is "${issuer}"`),
    )
  })

  test.each(['jwks_uri', 'authorization_endpoint', 'token_endpoint'])(
    'rejects a document in which %s is missing or not an https URL',
    async name => {
      const { idp, provider } = await startWithProvider()
      const whole = (await (await fetch(`${idp.issuer}${discovery}`)).json()) as object
      for (const value of [undefined, 7, 'nowhere', 'http://x.test/', 'ftp://x.test/']) {
        idp.intercept = () => ({ status: 200, body: JSON.stringify({ ...whole, [name]: value }) })
        await expect(provider.discover()).rejects.toEqual(
          failed(`its discovery document has no https URL for ${name}`),
        )
      }
      idp.intercept = () => undefined
      await provider.discover()
    },
  )

  test('S5.3-11: is skipped with jwksUri and no client, and not with a client', async () => {
    const idp = await startProvider()
    await idp.stop()
    const jwksUri = idp.keySetUrl.href
    await createOidcFixture(idp, { jwksUri }).provider.discover()
    expect(await createOidcFixture(idp, { jwksUri }).provider.keySetUrl()).toEqual(idp.keySetUrl)
    await expect(
      createOidcFixture(idp, { jwksUri, client: oidcClient() }).provider.discover(),
    ).rejects.toEqual(failed('it refused the connection'))
  })

  test('runs once, and again after a failure', async () => {
    const { idp, provider } = await startWithProvider()
    await idp.stop()
    await expect(provider.keySetUrl()).rejects.toMatchObject(unavailable)
    await expect(provider.hasDeviceEndpoint()).rejects.toMatchObject(unavailable)
    await idp.restart()
    await Promise.all(Array.from({ length: 10 }, () => provider.keySetUrl()))
    await provider.discover()
    expect(await provider.keySetUrl()).toEqual(idp.keySetUrl)
    expect(idp.count(discovery)).toBe(1)
  })

  test('keeps the path of the issuer', async () => {
    const requested: string[] = []
    const fetch = (async (url: string | URL) => {
      requested.push(String(url))
      return new Response(null, { status: 404 })
    }) as typeof globalThis.fetch
    for (const issuer of ['https://x.test/realms/one', 'https://x.test/realms/one/', 'https://x.test'])
      await createOidcFixture({ issuer }, {}, { fetch })
        .provider.discover()
        .catch(() => undefined)
    expect(requested).toEqual([
      `https://x.test/realms/one${discovery}`,
      `https://x.test/realms/one${discovery}`,
      `https://x.test${discovery}`,
    ])
  })

  test('accepts a document without a key set URL if jwksUri is set', async () => {
    const { idp } = await startWithProvider()
    const whole = (await (await fetch(`${idp.issuer}${discovery}`)).json()) as object
    idp.intercept = () => ({ status: 200, body: JSON.stringify({ ...whole, jwks_uri: undefined }) })
    const { provider } = createOidcFixture(idp, { jwksUri: idp.keySetUrl.href, client: oidcClient() })
    await provider.discover()
    expect(await provider.hasDeviceEndpoint()).toBe(true)
  })

  test('requires only the key set URL without a client', async () => {
    const { idp } = await startWithProvider()
    const { issuer } = idp
    idp.intercept = () => ({ status: 200, body: JSON.stringify({ issuer, jwks_uri: `${issuer}/jwks` }) })
    await createOidcFixture(idp).provider.discover()
  })

  test('shortens an unexpected issuer in its message', async () => {
    const { idp, provider } = await startWithProvider()
    idp.intercept = () => ({ status: 200, body: JSON.stringify({ issuer: `https://${'x'.repeat(5_000)}` }) })
    const error = await provider.discover().catch(error => error)
    expect(error.message.length).toBeLessThan(400)
  })

  test('rejects http endpoints of an https provider, so secrets are never sent unencrypted [security rule 15]', async () => {
    const issuer = 'https://x.test'
    const protocols: string[] = []
    const document = {
      issuer,
      jwks_uri: `${issuer}/jwks`,
      authorization_endpoint: `${issuer}/auth`,
      token_endpoint: `${issuer}/token`,
      device_authorization_endpoint: 'http://x.test/device',
    }
    const fetch = (async (url: string | URL) => {
      protocols.push(new URL(url).protocol)
      return Response.json(document)
    }) as typeof globalThis.fetch
    const { provider } = createOidcFixture(
      { issuer },
      { client: oidcClient() },
      { clientSecret: 'secret', fetch },
    )
    expect(await provider.hasDeviceEndpoint()).toBe(false)
    expect(await provider.authorizeDevice()).toEqual({ errorCode: 'invalid_response' })
    expect(protocols).toEqual(['https:'])
  })

  test('does not report internal errors as provider failures', async () => {
    const { provider } = await startWithProvider()
    await expect(provider.refresh('')).rejects.toThrow(TypeError)
    const nameless = await startWithProvider({}, { clientId: '' })
    await expect(nameless.provider.discover()).rejects.toThrow(TypeError)
  })

  test('throws not_configured for a refresh without a client', async () => {
    const { provider } = createOidcFixture(await startProvider())
    await expect(provider.refresh('r')).rejects.toMatchObject({ code: 'not_configured' })
  })
})
