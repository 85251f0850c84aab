import { createHmac, createPublicKey, type JsonWebKey } from 'node:crypto'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { describe, expect, test } from 'vitest'
import { audience, type ProviderOptions, startProvider } from '../../harness/identity-provider.ts'
import { createOidcFixture, type OidcFixture } from './oidc-fixture.ts'

const messages = {
  expired: 'the token is expired',
  early: 'the token is not yet valid',
  endless: 'the token has no expiry',
  signature: 'the signature of the token was not verified',
  issuer: 'the issuer of the token is not accepted',
  audience: 'the audience of the token is not accepted',
  extension: 'the token requires an extension that is not supported',
  malformed: 'the token is malformed',
  otherKind: 'the token is not an access token',
} as const

async function startWithVerifier(
  more: Parameters<typeof createOidcFixture>[1] = {},
  options: ProviderOptions = {},
) {
  const idp = await startProvider(options)
  return { idp, ...createOidcFixture(idp, more) }
}

/** Returns the message of the rejection; undefined if the token is accepted. */
async function rejectionOf(
  { verifier }: Pick<OidcFixture, 'verifier'>,
  token: string,
): Promise<string | undefined> {
  return verifier.verify(token)!.then(
    () => undefined,
    error => {
      expect(error).toMatchObject({ name: 'WbError', code: 'unauthorized', status: 401 })
      return (error as Error).message
    },
  )
}

const base64url = (text: string | Buffer) => Buffer.from(text).toString('base64url')
const nowSeconds = () => Math.floor(Date.now() / 1_000)

describe('accepted tokens', () => {
  test.each(['ES256', 'RS256', 'PS256', 'EdDSA'] as const)(
    'S5.3-02 S2.1-05 S2.1-06: signed with %s are verified and set the subject',
    async algorithm => {
      const { idp, verifier } = await startWithVerifier({}, { algorithm })
      const exp = nowSeconds() + 60
      expect(await verifier.verify(await idp.sign({ exp }))).toEqual({
        subject: {
          id: 'alice',
          label: 'alice@example.test',
          type: 'oidc',
          workspaceScopes: null,
          scopes: null,
          role: null,
          principalId: 'alice',
          keyLifetimeMaxMs: null,
        },
        expiresAtSeconds: exp,
      })
    },
  )

  test('have their expiry in whole seconds', async () => {
    const { idp, verifier } = await startWithVerifier()
    const exp = nowSeconds() + 60
    const found = await verifier.verify(await idp.sign({ exp: exp + 0.5 }))
    expect(found!.expiresAtSeconds).toBe(exp)
  })

  test.each([undefined, 'JWT', 'at+jwt', 'application/at+jwt', 'AT+JWT'])(
    'can have the type %s [security rule 11]',
    async typ => {
      const { idp, ...rest } = await startWithVerifier()
      expect(await rejectionOf(rest, await idp.sign({}, { typ }))).toBeUndefined()
    },
  )

  test('can have a nonce or the Keycloak type Bearer without counting as an ID token [security rule 11]', async () => {
    const { idp, ...rest } = await startWithVerifier()
    expect(await rejectionOf(rest, await idp.sign({ nonce: 'n' }, { typ: 'JWT' }))).toBeUndefined()
    expect(await rejectionOf(rest, await idp.sign({ typ: 'Bearer' }, { typ: 'JWT' }))).toBeUndefined()
    expect(await rejectionOf(rest, await idp.sign({ events: { 'urn:other': {} } }))).toBeUndefined()
    expect(await rejectionOf(rest, await idp.sign({ events: 'none' }))).toBeUndefined()
  })

  test('can have 6 KB', async () => {
    const { idp, ...rest } = await startWithVerifier()
    const token = await idp.sign({ groups: Array.from({ length: 300 }, (_, at) => `group-${at}-of-many`) })
    expect(token.length).toBeGreaterThan(6_000)
    expect(await rejectionOf(rest, token)).toBeUndefined()
  })
})

describe('format', () => {
  test.each([
    '',
    'opaque',
    'a.b',
    'a.b.',
    '.b.c',
    'a..c',
    'a.b.c.d',
    'a.b.c.d.e',
    'a.b=.c',
    'a.b.c ',
    'a.b+.c',
  ])('S5.2-07 S5.3-01: %j is ignored without a request to the provider', async token => {
    const { idp, verifier } = await startWithVerifier()
    expect(verifier.verify(token)).toBeUndefined()
    expect(idp.requests).toEqual([])
  })

  test('an opaque access token from the provider is rejected', async () => {
    const { verifier } = await startWithVerifier()
    await expect(verifier.check('opaque')).rejects.toMatchObject({
      code: 'unauthorized',
      message: "the identity provider's access token is not a JWT",
    })
  })
})

describe('issuer and audience', () => {
  test.each([
    (issuer: string) => `${issuer}/`,
    (issuer: string) => issuer.toUpperCase(),
    () => 'https://x.test',
  ])('S2.2-09 S5.3-05: an issuer that differs in any character is rejected (%s)', async changed => {
    const { idp, ...rest } = await startWithVerifier()
    expect(await rejectionOf(rest, await idp.sign({ iss: changed(idp.issuer) }))).toBe(messages.issuer)
  })

  test('S2.2-09: the configured issuer is compared literally', async () => {
    const idp = await startProvider()
    const strict = createOidcFixture({ issuer: `${idp.issuer}/` }, { jwksUri: idp.keySetUrl.href })
    expect(await rejectionOf(strict, await idp.sign())).toBe(messages.issuer)
    expect(await rejectionOf(strict, await idp.sign({ iss: `${idp.issuer}/` }))).toBeUndefined()
  })

  test('S2.2-10 S2.2-11 S5.3-06: at least one audience must be configured', async () => {
    const { idp, ...rest } = await startWithVerifier({ audience: ['first', 'second'] })
    for (const aud of ['first', 'second', ['other', 'second']])
      expect(await rejectionOf(rest, await idp.sign({ aud }))).toBeUndefined()
    for (const aud of [
      'other',
      ['other'],
      [],
      '',
      'FIRST',
      'first second',
      [['first']],
      { 0: 'first' },
      undefined,
    ])
      expect(await rejectionOf(rest, await idp.sign({ aud }))).toBe(messages.audience)
  })

  test.each([null, 7, ['http://x'], undefined])('an issuer of %j is rejected', async iss => {
    const { idp, ...rest } = await startWithVerifier()
    expect(await rejectionOf(rest, await idp.sign({ iss }))).toBe(messages.issuer)
  })
})

describe('times', () => {
  test.each([0, 30, 300])(
    'S2.2-14 S2.2-15 S5.3-07: exp and nbf are checked with a tolerance of %i seconds',
    async clockToleranceSeconds => {
      const { idp, clock, ...rest } = await startWithVerifier({ clockToleranceSeconds })
      const now = Math.floor(clock.now() / 1_000)
      const ended = (agoSeconds: number) => idp.sign({ exp: now - agoSeconds })
      const begins = (inSeconds: number) => idp.sign({ nbf: now + inSeconds, exp: now + 3_600 })
      expect(await rejectionOf(rest, await ended(clockToleranceSeconds - 1))).toBeUndefined()
      expect(await rejectionOf(rest, await ended(clockToleranceSeconds))).toBe(messages.expired)
      expect(await rejectionOf(rest, await begins(clockToleranceSeconds))).toBeUndefined()
      expect(await rejectionOf(rest, await begins(clockToleranceSeconds + 1))).toBe(messages.early)
    },
  )

  test('S5.3-07: a token that was verified before is rejected after its expiry [security rule 11]', async () => {
    const { idp, clock, ...rest } = await startWithVerifier()
    const token = await idp.sign({ exp: Math.floor(clock.now() / 1_000) + 10 })
    expect(await rejectionOf(rest, token)).toBeUndefined()
    clock.advance(39_000)
    expect(await rejectionOf(rest, token)).toBeUndefined()
    clock.advance(1_000)
    expect(await rejectionOf(rest, token)).toBe(messages.expired)
    expect(await rejectionOf(rest, token)).toBe(messages.expired)
  })

  test('S5.3-07: a token that was verified before is rejected before its nbf', async () => {
    const { idp, clock, ...rest } = await startWithVerifier()
    const token = await idp.sign({ nbf: Math.floor(clock.now() / 1_000) })
    expect(await rejectionOf(rest, token)).toBeUndefined()
    clock.advance(-31_000)
    expect(await rejectionOf(rest, token)).toBe(messages.early)
  })

  test.each([
    [{ exp: undefined }, messages.endless],
    [{ exp: '1e99' }, messages.endless],
    [{ exp: 1e17 }, messages.endless],
    [{ exp: null }, messages.endless],
    [{ nbf: 'tomorrow' }, messages.malformed],
    [{ iat: 'now' }, messages.malformed],
  ])('a token with %j is rejected', async (claims, message) => {
    const { idp, ...rest } = await startWithVerifier()
    expect(await rejectionOf(rest, await idp.sign(claims))).toBe(message)
  })

  test('a token with an infinite expiry is rejected', async () => {
    const { idp, ...rest } = await startWithVerifier()
    const [header] = (await idp.sign()).split('.') as [string]
    const payload = base64url(`{"iss":"${idp.issuer}","aud":"${audience}","sub":"alice","exp":1e999}`)
    expect(await rejectionOf(rest, await idp.signRaw(header, payload))).toBe(messages.endless)
  })
})

describe('signature', () => {
  test('S5.3-02: a token signed with an unknown key is rejected', async () => {
    const { idp, ...rest } = await startWithVerifier()
    expect(await rejectionOf(rest, await idp.sign({}, {}, 'stolen'))).toBe(messages.signature)
  })

  test('S5.3-02: a token that is changed at any position is rejected', async () => {
    const { idp, ...rest } = await startWithVerifier()
    const token = await idp.sign()
    const places = Array.from({ length: 40 }, (_, at) => Math.floor((at * token.length) / 40))
    for (const at of places.filter(at => token[at] !== '.')) {
      const changed = token.slice(0, at) + (token[at] === 'A' ? 'B' : 'A') + token.slice(at + 1)
      const message = await rejectionOf(rest, changed)
      expect([messages.signature, messages.malformed]).toContain(message)
    }
  })

  test('the algorithm `none` is rejected [security rule 11]', async () => {
    const { idp, ...rest } = await startWithVerifier()
    const [, payload, signature] = (await idp.sign()).split('.') as [string, string, string]
    for (const alg of ['none', 'None', 'NONE']) {
      const header = base64url(JSON.stringify({ alg, typ: 'at+jwt' }))
      expect(rest.verifier.verify(`${header}.${payload}.`)).toBeUndefined()
      expect(await rejectionOf(rest, `${header}.${payload}.${signature}`)).toBe(messages.signature)
    }
    expect(idp.count('/jwks')).toBe(0)
  })

  test.each(['HS256', 'HS384', 'HS512'])(
    '%s with the public key as secret is rejected [security rule 11]',
    async alg => {
      const { idp, ...rest } = await startWithVerifier({}, { algorithm: 'RS256' })
      const publicKey = idp.publicKey()
      const [, payload] = (await idp.sign()).split('.') as [string, string]
      const input = `${base64url(JSON.stringify({ alg, kid: publicKey.kid, typ: 'at+jwt' }))}.${payload}`
      const key = createPublicKey({ key: publicKey as JsonWebKey, format: 'jwk' })
      for (const secret of [
        key.export({ type: 'spki', format: 'pem' }),
        key.export({ type: 'spki', format: 'der' }),
        JSON.stringify(publicKey),
      ]) {
        const signature = createHmac(alg.replace('HS', 'sha'), secret).update(input).digest('base64url')
        expect(await rejectionOf(rest, `${input}.${signature}`)).toBe(messages.signature)
      }
    },
  )

  test('a key inside the token is ignored', async () => {
    const { idp, ...rest } = await startWithVerifier()
    const { privateKey, publicKey } = await generateKeyPair('ES256', { extractable: true })
    const jwk = await exportJWK(publicKey)
    const forged = await new SignJWT({
      iss: idp.issuer,
      aud: audience,
      sub: 'mallory',
      exp: nowSeconds() + 60,
    })
      .setProtectedHeader({ alg: 'ES256', jwk, jku: 'http://127.0.0.1:9/jwks', typ: 'at+jwt' })
      .sign(privateKey)
    expect(await rejectionOf(rest, forged)).toBe(messages.signature)
  })

  test('a weak key of the provider verifies no token', async () => {
    const { idp, ...rest } = await startWithVerifier({}, { algorithm: 'RS256' })
    const token = await idp.sign()
    const weak = { ...idp.publicKey(), n: base64url(Buffer.alloc(128, 0xff)) }
    idp.intercept = ({ path }) =>
      path === '/jwks' ? { status: 200, body: JSON.stringify({ keys: [weak] }) } : undefined
    expect(await rejectionOf(rest, token)).toBe(messages.signature)
  })

  test('a token without a key ID is checked with each suitable key', async () => {
    const { idp, ...rest } = await startWithVerifier()
    const early = await idp.sign({}, { kid: undefined })
    await idp.rotateKeys('kept')
    const late = await idp.sign({}, { kid: undefined })
    expect(await rejectionOf(rest, early)).toBeUndefined()
    expect(await rejectionOf(rest, late)).toBeUndefined()
    expect(await rejectionOf(rest, await idp.sign({ aud: 'other' }, { kid: undefined }))).toBe(
      messages.audience,
    )
    expect(await rejectionOf(rest, await idp.sign({}, { kid: undefined }, 'stolen'))).toBe(messages.signature)
  })
})

describe('header', () => {
  test.each([
    [{ crit: ['exp'] }, messages.extension],
    [{ crit: ['urn:x'], 'urn:x': true }, messages.extension],
    [{ crit: [] }, messages.malformed],
    [{ crit: 'exp' }, messages.malformed],
    [{ crit: ['b64'], b64: false }, messages.malformed],
    [{ alg: 7 }, messages.malformed],
    [{ alg: undefined }, messages.malformed],
  ])('a header with %j is rejected', async (more, message) => {
    const { idp, ...rest } = await startWithVerifier()
    const header = { alg: 'ES256', kid: idp.publicKey().kid, typ: 'at+jwt', ...more }
    const [, payload] = (await idp.sign()).split('.') as [string, string]
    const token = await idp.signRaw(base64url(JSON.stringify(header)), payload)
    expect(await rejectionOf(rest, token)).toBe(message)
  })

  test.each([7, ['x'], { x: 1 }, null, ''])('a `kid` of %j matches no key of the provider', async kid => {
    const { idp, ...rest } = await startWithVerifier()
    const header = { alg: 'ES256', kid, typ: 'at+jwt' }
    const [, payload] = (await idp.sign()).split('.') as [string, string]
    const message = await rejectionOf(rest, await idp.signRaw(base64url(JSON.stringify(header)), payload))
    expect([messages.signature, messages.malformed]).toContain(message)
  })
})

describe('tokens that are not access tokens are rejected [security rule 11]', () => {
  test.each([
    [{}, { typ: 'ID' }],
    [{}, { typ: 'id_token' }],
    [{}, { typ: 'id_token+jwt' }],
    [{}, { typ: 'logout+jwt' }],
    [{}, { typ: 'application/logout+jwt' }],
    [{}, { typ: 'secevent+jwt' }],
    [{ typ: 'ID' }, { typ: 'JWT' }],
    [{ typ: 'Logout' }, { typ: 'JWT' }],
    [{ typ: 'Refresh' }, { typ: 'JWT' }],
    [{ typ: 'Offline' }, { typ: 'JWT' }],
    [{ at_hash: 'x' }, { typ: 'JWT' }],
    [{ c_hash: 'x' }, { typ: 'JWT' }],
    [{ at_hash: null }, {}],
    [{ events: { 'http://schemas.openid.net/event/backchannel-logout': {} } }, { typ: 'JWT' }],
  ])('claims %j with header %j', async (claims, header) => {
    const { idp, ...rest } = await startWithVerifier()
    expect(await rejectionOf(rest, await idp.sign(claims, header))).toBe(messages.otherKind)
  })
})

describe('invalid input', () => {
  const deep = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`

  test('JSON with 10,000 levels in the header or payload is rejected', async () => {
    const { idp, ...rest } = await startWithVerifier()
    const [header, payload, signature] = (await idp.sign()).split('.') as [string, string, string]
    const nested = base64url(`{"alg":"ES256","x":${deep(10_000)}}`)
    expect(await rejectionOf(rest, `${nested}.${payload}.${signature}`)).toBe(messages.signature)
    expect(await rejectionOf(rest, `${base64url(deep(10_000))}.${payload}.${signature}`)).toBe(
      messages.malformed,
    )
    expect(await rejectionOf(rest, `${header}.${base64url(deep(10_000))}.${signature}`)).toBe(
      messages.signature,
    )
  })

  test('JSON with 10,000 levels in a signed token is accepted if the checked claims are valid', async () => {
    const { idp, verifier } = await startWithVerifier()
    const [header] = (await idp.sign()).split('.') as [string]
    const claims = { iss: idp.issuer, aud: audience, sub: 'alice', exp: nowSeconds() + 60 }
    const payload = `${JSON.stringify(claims).slice(0, -1)},"wb_workspace_scopes":${deep(10_000)}}`
    const found = await verifier.verify(await idp.signRaw(header, base64url(payload)))
    expect(found!.subject.workspaceScopes).toEqual([])
  })

  test.each(['null', '[]', '"x"', '7', '{', '\ud800', ''].map(text => [text]))(
    'a payload of %j is rejected',
    async text => {
      const { idp, ...rest } = await startWithVerifier()
      const [header] = (await idp.sign()).split('.') as [string]
      const token = await idp.signRaw(header, base64url(text) || 'A')
      expect(await rejectionOf(rest, token)).toBe(messages.malformed)
    },
  )

  test('S5.3-09 S5.3-10: any invalid token gets one of a fixed set of messages', async () => {
    const { idp, ...rest } = await startWithVerifier()
    const [header, payload, signature] = (await idp.sign()).split('.') as [string, string, string]
    const parts = [header, payload, signature, 'AA', base64url('{}'), base64url('{"alg":"ES256"}'), '____']
    for (const first of parts)
      for (const second of parts)
        for (const third of parts) {
          const message = await rejectionOf(rest, `${first}.${second}.${third}`)
          if (message !== undefined) expect(Object.values(messages)).toContain(message)
          else expect([first, second, third]).toEqual([header, payload, signature])
        }
  })

  test('a token without a subject is rejected', async () => {
    const { idp, ...rest } = await startWithVerifier()
    for (const sub of [undefined, '', 7, null])
      expect(await rejectionOf(rest, await idp.sign({ sub }))).toBe('the token has no subject')
  })
})

describe('cache', () => {
  test('a verification is cached for its token only [security rule 11]', async () => {
    const { idp, verifier } = await startWithVerifier()
    const token = await idp.sign()
    const first = await verifier.verify(token)
    expect(await verifier.verify(token)).toBe(first)
    expect(await verifier.verify(await idp.sign({ sub: 'bob' }))).not.toBe(first)
  })
})
