import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Subject } from '../../src/access/subject.ts'
import {
  createAuthenticate,
  type RequestCredentials,
  type TokenVerifier,
} from '../../src/auth/authenticate.ts'
import { bearerToken } from '../../src/auth/bearer-token.ts'
import { newToken } from '../../src/auth/keys/token.ts'
import { Sealer } from '../../src/auth/session/sealer.ts'
import { SessionCookies } from '../../src/auth/session/session-cookies.ts'
import { WbError } from '../../src/contract/errors.ts'
import { type Opened, type Options, open, scratchDir, until } from '../harness/runtime.ts'
import { storeFile } from '../harness/store.ts'

const tokenKey = 'the-key-that-marks-tokens'

const headerForm = 'the Authorization header must be: Bearer <token>'
const noScheme = 'the token matches no configured scheme'
const refusesStrangers = 'this runtime rejects requests without credentials'

describe('the Authorization header', () => {
  test.each([
    ['Bearer abc', 'abc'],
    ['bearer abc', 'abc'],
    ['BEARER   abc  ', 'abc'],
    ['Bearer a.b-c_d~e+f/g==', 'a.b-c_d~e+f/g=='],
    [`Bearer ${'x'.repeat(100_000)}`, 'x'.repeat(100_000)],
  ])('S5.1-01: %j is a token', (header, token) => {
    expect(bearerToken(header)).toBe(token)
  })

  test.each([
    '',
    ' ',
    'Bearer',
    'Bearer ',
    'Bearerabc',
    'abc',
    'Basic dXNlcjpwYXNz',
    'Token abc',
    'Digest username="x"',
    'Bearer a b',
    'Bearer a, Bearer b',
    'Bearer a,b',
    'Bearer\tabc',
    ' Bearer abc',
    'Bearer abc\n',
    'Basic Bearer abc',
    newToken(tokenKey).token,
  ])('S5.1-02 S7.2-02: %j is none', header => {
    expect(() => bearerToken(header)).toThrow(
      expect.objectContaining({ code: 'unauthorized', message: headerForm }),
    )
  })

  test('whatever comes, it is one token without spaces and commas, or a refusal that does not repeat it', () => {
    const header = fc.tuple(fc.constantFrom('Bearer ', 'bearer', 'Basic ', ''), fc.string({ unit: 'binary' }))
    fc.assert(
      fc.property(header, ([scheme, rest]) => {
        try {
          return /^[^\s,]+$/.test(bearerToken(scheme + rest))
        } catch (error) {
          return error instanceof WbError && error.message === headerForm
        }
      }),
    )
  })
})

const subject: Subject = {
  id: 'ada',
  label: null,
  type: 'oidc',
  workspaceScopes: null,
  scopes: null,
  role: null,
  principalId: 'ada',
  keyLifetimeMaxMs: null,
}

/** Knows tokens that begin with a word: those that go on with `-good` hold. */
function verifierOf(
  word: string,
  expiresAtSeconds: number | null = null,
): TokenVerifier & { asked: string[] } {
  const asked: string[] = []
  return {
    asked,
    verify(token) {
      asked.push(token)
      if (!token.startsWith(word)) return undefined
      if (token !== `${word}-good`)
        return Promise.reject(new WbError('unauthorized', `the ${word} does not hold`))
      return Promise.resolve({ subject: { ...subject, id: word }, expiresAtSeconds })
    },
  }
}

const origin = 'https://wb.example.com'

function presented(fields: Partial<RequestCredentials>): RequestCredentials {
  return {
    authorization: null,
    cookie: null,
    client: '',
    requestId: 'r',
    siteOrigin: () => origin,
    ...fields,
  }
}

describe('S5.2-08: verifiers in their order', () => {
  const [key, jwt] = [verifierOf('key'), verifierOf('jwt', 1_900_000_000)]
  const authenticate = createAuthenticate({
    mode: 'any',
    anonymousPolicy: 'allow',
    verifiers: [key, jwt],
    sessions: undefined,
  })
  const present = async (token: string) => authenticate(presented({ authorization: `Bearer ${token}` }))

  test('S2.1-01 S2.1-02 S2.1-03 S2.1-04: the one that knows the shape says who it is', async () => {
    expect(await present('key-good')).toMatchObject({
      mode: 'any',
      authenticated: true,
      anonymous: false,
      subject: { id: 'key' },
      session: { expiresAtSeconds: null, canRefresh: false },
    })
    expect(jwt.asked).toEqual([])
    expect(await present('jwt-good')).toMatchObject({
      subject: { id: 'jwt' },
      session: { expiresAtSeconds: 1_900_000_000, canRefresh: false },
    })
    expect(key.asked).toEqual(['key-good', 'jwt-good'])
  })

  test('a token that its verifier refuses is not shown to the next', async () => {
    const before = jwt.asked.length
    await expect(present('key-bad')).rejects.toMatchObject({ message: 'the key does not hold' })
    expect(jwt.asked).toHaveLength(before)
  })

  test('S5.2-09 S7.2-03: a token of no known shape matches no scheme', async () => {
    await expect(present('other')).rejects.toMatchObject({ code: 'unauthorized', message: noScheme })
  })
})

describe('S5.1-03: a session cookie stands for a bearer token', () => {
  const sessions = new SessionCookies({
    seal: new Sealer(['a secret of the tests, 32 bytes up']),
    name: 'wb_session',
  })
  const jwt = verifierOf('jwt', 1_900_000_000)
  const authenticate = createAuthenticate({
    mode: 'oidc',
    anonymousPolicy: 'reject',
    verifiers: [jwt],
    sessions,
  })
  const present = async (fields: Partial<RequestCredentials>) => authenticate(presented(fields))
  const cookieOf = (accessToken: string, more = {}) =>
    sessions
      .write({ origin, cookies: null }, { accessToken, subject: 'jwt', issuedAt: 1, ...more }, 60)
      .map(line => line.split(';')[0])
      .join('; ')

  test('its token passes the same verifier, and says whether it can be renewed', async () => {
    const renewable = cookieOf('jwt-good', { refreshToken: 'r' })
    expect(await present({ cookie: renewable })).toMatchObject({
      subject: { id: 'jwt' },
      session: { expiresAtSeconds: 1_900_000_000, canRefresh: true },
    })
    expect(await present({ cookie: cookieOf('jwt-good') })).toMatchObject({ session: { canRefresh: false } })
    await expect(present({ cookie: cookieOf('jwt-bad') })).rejects.toMatchObject({
      message: 'the jwt does not hold',
    })
  })

  test('a cookie that cannot be opened is none, and so is that of another site', async () => {
    const none = { code: 'unauthorized', message: refusesStrangers }
    await expect(present({ cookie: 'wb_session=v2.a.b.c' })).rejects.toMatchObject(none)
    await expect(present({ cookie: 'other=1' })).rejects.toMatchObject(none)
    const cookie = cookieOf('jwt-good')
    await expect(present({ cookie, siteOrigin: () => 'https://evil.example' })).rejects.toMatchObject(none)
  })

  test('where there is a header it decides, and the cookie is not looked at', async () => {
    const cookie = cookieOf('jwt-good')
    for (const authorization of ['Bearer jwt-bad', 'Basic x', ''])
      await expect(present({ authorization, cookie })).rejects.toMatchObject({ code: 'unauthorized' })
    expect(await present({ authorization: 'Bearer jwt-good', cookie: 'wb_session=x' })).toMatchObject({
      subject: { id: 'jwt' },
    })
  })
})

const oidc = {
  issuer: 'https://issuer.example',
  audience: 'workbase',
  jwksUri: 'https://issuer.example/keys',
}
const bootstrapToken = 'bootstrap-token-of-the-tests-0123456789'
const modes = ['disabled', 'apiKey', 'oidc', 'any'] as const
const verifyingModes = ['apiKey', 'oidc', 'any'] as const
type Mode = (typeof modes)[number]

/** A runtime that verifies in some mode, with a bootstrap token where there can be one. */
function runtime(mode: Mode, auth: object = {}, options: Options = {}): Promise<Opened> {
  const usesOidc = mode === 'oidc' || mode === 'any'
  return open({
    config: {
      auth: {
        mode,
        ...(usesOidc && { oidc }),
        ...(mode !== 'disabled' && { bootstrapTokenRef: 'env:BOOT' }),
        ...auth,
      },
    },
    environment: { BOOT: bootstrapToken },
    ...options,
  })
}

const workspaces = 'GET /api/v1/workspaces'
const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

/** What every refused request has. */
async function expectUnauthorized(opened: Opened, headers: Record<string, string>, message: string) {
  const { status, body, headers: answered, text } = await opened.send(workspaces, undefined, headers)
  expect([status, body.error], text).toMatchObject([401, { code: 'unauthorized', message }])
  expect(answered.get('www-authenticate')).toBe('Bearer')
}

const forms: Record<string, string>[] = [
  {},
  { authorization: '' },
  { authorization: 'Basic x' },
  bearer('x'),
  bearer(newToken(tokenKey).token),
  bearer('eyJhbGciOiJub25lIn0.e30.x'),
]

describe('modes', () => {
  test.each(forms)('S5.2-01 S1-05: in mode disabled %j is anonymous', async headers => {
    const wb = await runtime('disabled')
    expect((await wb.send(workspaces, undefined, headers)).status).toBe(200)
  })

  test('S2.2-04: in mode disabled, reject asks for a header, and looks at none', async () => {
    const wb = await runtime('disabled', { anonymousPolicy: 'reject' })
    await expectUnauthorized(wb, {}, refusesStrangers)
    await expectUnauthorized(wb, { cookie: 'wb_session=x' }, refusesStrangers)
    for (const headers of forms.slice(1))
      expect((await wb.send(workspaces, undefined, headers)).status).toBe(200)
  })

  test.each(verifyingModes)('S5.2-12: no header passes as anonymous in mode %s with allow', async mode => {
    const wb = await runtime(mode)
    expect((await wb.send(workspaces)).status).toBe(200)
  })

  test.each(modes)(
    'S2.2-04 S5.2-13 S7.2-01 S7.2-06 S7.2-07: in mode %s, reject refuses no header',
    async mode => {
      await expectUnauthorized(await runtime(mode, { anonymousPolicy: 'reject' }), {}, refusesStrangers)
    },
  )

  test.each(verifyingModes)(
    'S5.1-02 S7.2-02 S7.2-07: mode %s refuses what is no bearer, with allow too',
    async mode => {
      const wb = await runtime(mode)
      for (const authorization of [
        '',
        'Bearer',
        'Basic dXNlcjpwYXNz',
        'Token x',
        newToken(tokenKey).token,
        'Bearer a, Bearer b',
      ])
        await expectUnauthorized(wb, { authorization }, headerForm)
    },
  )

  test.each(verifyingModes)('S5.2-09 S5.2-02 S7.2-03: mode %s has no scheme for other shapes', async mode => {
    const wb = await runtime(mode)
    for (const token of ['x', '0', 'x'.repeat(100_000), 'wb_live_', `${newToken(tokenKey).token}x`, 'a.b'])
      await expectUnauthorized(wb, bearer(token), noScheme)
  })

  test('S5.2-02 S5.2-08: keys are verified in modes apiKey and any, in mode oidc they are no scheme', async () => {
    const { token } = newToken(tokenKey)
    for (const mode of ['apiKey', 'any'] as const)
      await expectUnauthorized(await runtime(mode), bearer(token), 'the token is not valid')
    await expectUnauthorized(await runtime('oidc'), bearer(token), noScheme)
  })

  test('S5.2-02: in mode apiKey a JWT is no scheme', async () => {
    await expectUnauthorized(await runtime('apiKey'), bearer('eyJhbGciOiJub25lIn0.e30.x'), noScheme)
  })
})

describe('the bootstrap token', () => {
  test.each(verifyingModes)(
    'S2.2-06 S5.2-10 S2.1-07: in mode %s it is an operator without bounds',
    async mode => {
      const wb = await runtime(mode, { anonymousPolicy: 'reject' })
      expect((await wb.send('POST /api/v1/workspaces', { name: 'one' }, bearer(bootstrapToken))).status).toBe(
        201,
      )
      await expectUnauthorized(wb, bearer(`${bootstrapToken}x`), noScheme)
      await expectUnauthorized(wb, bearer(bootstrapToken.slice(0, -1)), noScheme)
    },
  )

  test('S2.2-06: mode disabled does not start with one', async () => {
    await expect(runtime('disabled', { bootstrapTokenRef: 'env:BOOT' })).rejects.toThrow(
      'auth.bootstrapTokenRef',
    )
  })

  test('S5.2-11: with it the first workspace and its first key are made, and the key works', async () => {
    const wb = await runtime('apiKey', { anonymousPolicy: 'reject' })
    const operator = bearer(bootstrapToken)
    const made = await wb.send('POST /api/v1/workspaces', { name: 'first' }, operator)
    const keys = `/api/v1/workspaces/${made.body.workspaceId}/api-keys`
    const minted = await wb.send(`POST ${keys}`, { label: 'first', role: 'admin' }, operator)
    expect(minted.status).toBe(201)
    const key = bearer(String(minted.body.plaintext))
    expect((await wb.send(`GET ${keys}`, undefined, key)).status).toBe(200)
  })

  test('S6-02: every use is in the audit trail, under its request id, and without the token', async () => {
    const wb = await runtime('apiKey', { anonymousPolicy: 'reject' })
    const file = storeFile(wb.dataDir)
    const uses = () => file.all("SELECT body FROM audit WHERE body ->> '$.action' = 'auth.bootstrap_use'")
    const answers = [
      await wb.send(workspaces, undefined, bearer(bootstrapToken)),
      await wb.send('POST /api/v1/workspaces', {}, bearer(bootstrapToken)),
    ]
    expect(answers.map(({ status }) => status)).toEqual([200, 400])
    await until(() => uses().length === 2)
    const records = uses().map(({ body }) => JSON.parse(String(body)))
    for (const [at, record] of records.entries())
      expect(record).toMatchObject({
        outcome: 'success',
        requestId: answers[at]!.headers.get('x-request-id'),
        subject: { type: 'bootstrap', id: 'bootstrap', label: 'bootstrap operator' },
        workspaceId: null,
        details: { scheme: 'bootstrap' },
      })
    expect(file.mentions(bootstrapToken)).toEqual([])
  })

  test('S2.2-05: it is a reference to a variable or a file; without one nobody is the operator', async () => {
    const folder = scratchDir()
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, 'boot'), `${bootstrapToken}\n`)
    const bootstrapTokenRef = `file:${join(folder, 'boot')}`
    const filed = await runtime('apiKey', { anonymousPolicy: 'reject', bootstrapTokenRef })
    expect((await filed.send(workspaces, undefined, bearer(bootstrapToken))).status).toBe(200)
    const without = await runtime('apiKey', { anonymousPolicy: 'reject', bootstrapTokenRef: null })
    await expectUnauthorized(without, bearer(bootstrapToken), noScheme)
    await expect(runtime('apiKey', { bootstrapTokenRef: bootstrapToken })).rejects.toThrow(
      'auth.bootstrapTokenRef',
    )
  })

  test('S5.9-11: a changed token holds after a restart, and the old one does not', async () => {
    const before = await runtime('apiKey', { anonymousPolicy: 'reject' })
    await before.close()
    const changed = 'another-bootstrap-token-0123456789'
    const { dataDir } = before
    const wb = await runtime(
      'apiKey',
      { anonymousPolicy: 'reject' },
      { dataDir, environment: { BOOT: changed } },
    )
    await expectUnauthorized(wb, bearer(bootstrapToken), noScheme)
    expect((await wb.send(workspaces, undefined, bearer(changed))).status).toBe(200)
  })
})

test('guesses from many addresses of one IPv6 network wait in one queue, its neighbours in others [security rule 10]', async () => {
  const wb = await runtime('apiKey')
  const guess = async (address: string) => {
    const headers = { ...bearer(newToken(tokenKey).token), host: 'localhost' }
    const request = new Request('http://localhost/api/v1/workspaces', { headers })
    const answer = await wb.runtime.app.fetch(request, { peer: { encrypted: false, address } })
    if (answer.status === 429) expect(answer.headers.get('retry-after')).toBe('1')
    return answer.status
  }
  const statusesOf = async (addresses: string[]) => (await Promise.all(addresses.map(guess))).sort()
  const same = await statusesOf(Array.from({ length: 60 }, (_, n) => `2001:db8::${n.toString(16)}`))
  expect(new Set(same)).toEqual(new Set([401, 429]))
  const neighbours = Array.from({ length: 60 }, (_, n) => `2001:db8:0:${n.toString(16)}::1`)
  expect(new Set(await statusesOf(neighbours))).toEqual(new Set([401]))
})
