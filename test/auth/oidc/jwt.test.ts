import { createHmac, createPublicKey, type JsonWebKey } from 'node:crypto'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { describe, expect, test } from 'vitest'
import { audience, type ProviderOptions, startProvider } from '../../harness/identity-provider.ts'
import { type Stage, stage } from './stage.ts'

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

async function staged(more: Parameters<typeof stage>[1] = {}, options: ProviderOptions = {}) {
  const idp = await startProvider(options)
  return { idp, ...stage(idp, more) }
}

/** What a bearer of the token is told; undefined when it is let in. */
async function refusal({ verifier }: Pick<Stage, 'verifier'>, token: string): Promise<string | undefined> {
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

describe('what passes', () => {
  test.each(['ES256', 'RS256', 'PS256', 'EdDSA'] as const)(
    'S5.3-02 S2.1-05 S2.1-06: a token signed with %s is verified, and says who it is',
    async algorithm => {
      const { idp, verifier } = await staged({}, { algorithm })
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

  test('the end of a token is told in whole seconds', async () => {
    const { idp, verifier } = await staged()
    const exp = nowSeconds() + 60
    const found = await verifier.verify(await idp.sign({ exp: exp + 0.5 }))
    expect(found!.expiresAtSeconds).toBe(exp)
  })

  test.each([undefined, 'JWT', 'at+jwt', 'application/at+jwt', 'AT+JWT'])(
    'an access token may be of the type %s [security rule 11]',
    async typ => {
      const { idp, ...rest } = await staged()
      expect(await refusal(rest, await idp.sign({}, { typ }))).toBeUndefined()
    },
  )

  test('a nonce alone makes no ID token, nor does what Keycloak calls a bearer [security rule 11]', async () => {
    const { idp, ...rest } = await staged()
    expect(await refusal(rest, await idp.sign({ nonce: 'n' }, { typ: 'JWT' }))).toBeUndefined()
    expect(await refusal(rest, await idp.sign({ typ: 'Bearer' }, { typ: 'JWT' }))).toBeUndefined()
    expect(await refusal(rest, await idp.sign({ events: { 'urn:other': {} } }))).toBeUndefined()
    expect(await refusal(rest, await idp.sign({ events: 'none' }))).toBeUndefined()
  })

  test('a token of 6 KB that the provider issued passes', async () => {
    const { idp, ...rest } = await staged()
    const token = await idp.sign({ groups: Array.from({ length: 300 }, (_, at) => `group-${at}-of-many`) })
    expect(token.length).toBeGreaterThan(6_000)
    expect(await refusal(rest, token)).toBeUndefined()
  })
})

describe('shape', () => {
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
  ])('S5.2-07 S5.3-01: %j is passed over, and asks the provider for nothing', async token => {
    const { idp, verifier } = await staged()
    expect(verifier.verify(token)).toBeUndefined()
    expect(idp.asked).toEqual([])
  })

  test('a token that the provider issued and that is no JWT is refused', async () => {
    const { verifier } = await staged()
    await expect(verifier.check('opaque')).rejects.toMatchObject({
      code: 'unauthorized',
      message: 'the access token of the provider is not a JWT',
    })
  })
})

describe('issuer and audience', () => {
  test.each([
    (issuer: string) => `${issuer}/`,
    (issuer: string) => issuer.toUpperCase(),
    () => 'https://x.test',
  ])('S2.2-09 S5.3-05: an issuer that differs in any character is refused (%s)', async changed => {
    const { idp, ...rest } = await staged()
    expect(await refusal(rest, await idp.sign({ iss: changed(idp.issuer) }))).toBe(messages.issuer)
  })

  test('S2.2-09: the issuer of the configuration is compared as it is written', async () => {
    const idp = await startProvider()
    const strict = stage({ issuer: `${idp.issuer}/` }, { jwksUri: idp.keySetUrl.href })
    expect(await refusal(strict, await idp.sign())).toBe(messages.issuer)
    expect(await refusal(strict, await idp.sign({ iss: `${idp.issuer}/` }))).toBeUndefined()
  })

  test('S2.2-10 S2.2-11 S5.3-06: one of the audiences must be one of the configuration', async () => {
    const { idp, ...rest } = await staged({ audience: ['first', 'second'] })
    for (const aud of ['first', 'second', ['other', 'second']])
      expect(await refusal(rest, await idp.sign({ aud }))).toBeUndefined()
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
      expect(await refusal(rest, await idp.sign({ aud }))).toBe(messages.audience)
  })

  test.each([null, 7, ['http://x'], undefined])('an issuer of %j is refused', async iss => {
    const { idp, ...rest } = await staged()
    expect(await refusal(rest, await idp.sign({ iss }))).toBe(messages.issuer)
  })
})

describe('times', () => {
  test.each([0, 30, 300])(
    'S2.2-14 S2.2-15 S5.3-07: exp and nbf hold within %i seconds of skew and not beyond',
    async clockToleranceSeconds => {
      const { idp, clock, ...rest } = await staged({ clockToleranceSeconds })
      const now = Math.floor(clock.now() / 1_000)
      const ended = (agoSeconds: number) => idp.sign({ exp: now - agoSeconds })
      const begins = (inSeconds: number) => idp.sign({ nbf: now + inSeconds, exp: now + 3_600 })
      expect(await refusal(rest, await ended(clockToleranceSeconds - 1))).toBeUndefined()
      expect(await refusal(rest, await ended(clockToleranceSeconds))).toBe(messages.expired)
      expect(await refusal(rest, await begins(clockToleranceSeconds))).toBeUndefined()
      expect(await refusal(rest, await begins(clockToleranceSeconds + 1))).toBe(messages.early)
    },
  )

  test('S5.3-07: a token that was verified before ends when it says so [security rule 11]', async () => {
    const { idp, clock, ...rest } = await staged()
    const token = await idp.sign({ exp: Math.floor(clock.now() / 1_000) + 10 })
    expect(await refusal(rest, token)).toBeUndefined()
    clock.advance(39_000)
    expect(await refusal(rest, token)).toBeUndefined()
    clock.advance(1_000)
    expect(await refusal(rest, token)).toBe(messages.expired)
    expect(await refusal(rest, token)).toBe(messages.expired)
  })

  test('S5.3-07: a token that was verified before is not valid before it says so', async () => {
    const { idp, clock, ...rest } = await staged()
    const token = await idp.sign({ nbf: Math.floor(clock.now() / 1_000) })
    expect(await refusal(rest, token)).toBeUndefined()
    clock.advance(-31_000)
    expect(await refusal(rest, token)).toBe(messages.early)
  })

  test.each([
    [{ exp: undefined }, messages.endless],
    [{ exp: '1e99' }, messages.endless],
    [{ exp: 1e17 }, messages.endless],
    [{ exp: null }, messages.endless],
    [{ nbf: 'tomorrow' }, messages.malformed],
    [{ iat: 'now' }, messages.malformed],
  ])('a token that says %j is refused', async (claims, message) => {
    const { idp, ...rest } = await staged()
    expect(await refusal(rest, await idp.sign(claims))).toBe(message)
  })

  test('a token that ends beyond all numbers is refused', async () => {
    const { idp, ...rest } = await staged()
    const [header] = (await idp.sign()).split('.') as [string]
    const payload = base64url(`{"iss":"${idp.issuer}","aud":"${audience}","sub":"alice","exp":1e999}`)
    expect(await refusal(rest, await idp.signRaw(header, payload))).toBe(messages.endless)
  })
})

describe('signature', () => {
  test('S5.3-02: a token under a key that is not the provider’s is refused', async () => {
    const { idp, ...rest } = await staged()
    expect(await refusal(rest, await idp.sign({}, {}, 'stolen'))).toBe(messages.signature)
  })

  test('S5.3-02: a token that was changed at any place is refused', async () => {
    const { idp, ...rest } = await staged()
    const token = await idp.sign()
    const places = Array.from({ length: 40 }, (_, at) => Math.floor((at * token.length) / 40))
    for (const at of places.filter(at => token[at] !== '.')) {
      const changed = token.slice(0, at) + (token[at] === 'A' ? 'B' : 'A') + token.slice(at + 1)
      const told = await refusal(rest, changed)
      expect([messages.signature, messages.malformed]).toContain(told)
    }
  })

  test('`none` is no algorithm [security rule 11]', async () => {
    const { idp, ...rest } = await staged()
    const [, payload, signature] = (await idp.sign()).split('.') as [string, string, string]
    for (const alg of ['none', 'None', 'NONE']) {
      const header = base64url(JSON.stringify({ alg, typ: 'at+jwt' }))
      expect(rest.verifier.verify(`${header}.${payload}.`)).toBeUndefined()
      expect(await refusal(rest, `${header}.${payload}.${signature}`)).toBe(messages.signature)
    }
    expect(idp.count('/jwks')).toBe(0)
  })

  test.each(['HS256', 'HS384', 'HS512'])(
    '%s under the public key is refused [security rule 11]',
    async alg => {
      const { idp, ...rest } = await staged({}, { algorithm: 'RS256' })
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
        expect(await refusal(rest, `${input}.${signature}`)).toBe(messages.signature)
      }
    },
  )

  test('a key that the token itself brings along is not looked at', async () => {
    const { idp, ...rest } = await staged()
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
    expect(await refusal(rest, forged)).toBe(messages.signature)
  })

  test('a weak key of the provider verifies nothing', async () => {
    const { idp, ...rest } = await staged({}, { algorithm: 'RS256' })
    const token = await idp.sign()
    const weak = { ...idp.publicKey(), n: base64url(Buffer.alloc(128, 0xff)) }
    idp.front = ({ path }) =>
      path === '/jwks' ? { status: 200, body: JSON.stringify({ keys: [weak] }) } : undefined
    expect(await refusal(rest, token)).toBe(messages.signature)
  })

  test('a token that names no key is checked with each that may be it', async () => {
    const { idp, ...rest } = await staged()
    const early = await idp.sign({}, { kid: undefined })
    await idp.rotateKeys('kept')
    const late = await idp.sign({}, { kid: undefined })
    expect(await refusal(rest, early)).toBeUndefined()
    expect(await refusal(rest, late)).toBeUndefined()
    expect(await refusal(rest, await idp.sign({ aud: 'other' }, { kid: undefined }))).toBe(messages.audience)
    expect(await refusal(rest, await idp.sign({}, { kid: undefined }, 'stolen'))).toBe(messages.signature)
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
  ])('a header that says %j is refused', async (more, message) => {
    const { idp, ...rest } = await staged()
    const header = { alg: 'ES256', kid: idp.publicKey().kid, typ: 'at+jwt', ...more }
    const [, payload] = (await idp.sign()).split('.') as [string, string]
    const token = await idp.signRaw(base64url(JSON.stringify(header)), payload)
    expect(await refusal(rest, token)).toBe(message)
  })

  test.each([7, ['x'], { x: 1 }, null, ''])('a `kid` of %j is no key of the provider', async kid => {
    const { idp, ...rest } = await staged()
    const header = { alg: 'ES256', kid, typ: 'at+jwt' }
    const [, payload] = (await idp.sign()).split('.') as [string, string]
    const told = await refusal(rest, await idp.signRaw(base64url(JSON.stringify(header)), payload))
    expect([messages.signature, messages.malformed]).toContain(told)
  })
})

describe('what says that it is no access token [security rule 11]', () => {
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
  ])('claims %j under header %j', async (claims, header) => {
    const { idp, ...rest } = await staged()
    expect(await refusal(rest, await idp.sign(claims, header))).toBe(messages.otherKind)
  })
})

describe('bad input', () => {
  const deep = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`

  test('JSON of 10,000 levels in header or payload is refused', async () => {
    const { idp, ...rest } = await staged()
    const [header, payload, signature] = (await idp.sign()).split('.') as [string, string, string]
    const nested = base64url(`{"alg":"ES256","x":${deep(10_000)}}`)
    expect(await refusal(rest, `${nested}.${payload}.${signature}`)).toBe(messages.signature)
    expect(await refusal(rest, `${base64url(deep(10_000))}.${payload}.${signature}`)).toBe(messages.malformed)
    expect(await refusal(rest, `${header}.${base64url(deep(10_000))}.${signature}`)).toBe(messages.signature)
  })

  test('JSON of 10,000 levels that the provider signed is read as far as it is needed', async () => {
    const { idp, verifier } = await staged()
    const [header] = (await idp.sign()).split('.') as [string]
    const said = { iss: idp.issuer, aud: audience, sub: 'alice', exp: nowSeconds() + 60 }
    const payload = `${JSON.stringify(said).slice(0, -1)},"wb_workspace_scopes":${deep(10_000)}}`
    const found = await verifier.verify(await idp.signRaw(header, base64url(payload)))
    expect(found!.subject.workspaceScopes).toEqual([])
  })

  test.each(['null', '[]', '"x"', '7', '{', '\ud800', ''].map(text => [text]))(
    'a payload of %j is refused',
    async text => {
      const { idp, ...rest } = await staged()
      const [header] = (await idp.sign()).split('.') as [string]
      const token = await idp.signRaw(header, base64url(text) || 'A')
      expect(await refusal(rest, token)).toBe(messages.malformed)
    },
  )

  test('S5.3-09 S5.3-10: whatever stands in a token, its bearer is told one of a few sentences', async () => {
    const { idp, ...rest } = await staged()
    const [header, payload, signature] = (await idp.sign()).split('.') as [string, string, string]
    const parts = [header, payload, signature, 'AA', base64url('{}'), base64url('{"alg":"ES256"}'), '____']
    for (const first of parts)
      for (const second of parts)
        for (const third of parts) {
          const told = await refusal(rest, `${first}.${second}.${third}`)
          if (told !== undefined) expect(Object.values(messages)).toContain(told)
          else expect([first, second, third]).toEqual([header, payload, signature])
        }
  })

  test('a token that names nobody is refused', async () => {
    const { idp, ...rest } = await staged()
    for (const sub of [undefined, '', 7, null])
      expect(await refusal(rest, await idp.sign({ sub }))).toBe('the token has no subject')
  })
})

describe('memory', () => {
  test('a proof is remembered, and not for another token [security rule 11]', async () => {
    const { idp, verifier } = await staged()
    const token = await idp.sign()
    const first = await verifier.verify(token)
    expect(await verifier.verify(token)).toBe(first)
    expect(await verifier.verify(await idp.sign({ sub: 'bob' }))).not.toBe(first)
  })
})
