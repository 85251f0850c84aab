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
import { open, scratchDir, type TestRuntime, type TestRuntimeOptions, waitUntil } from '../harness/runtime.ts'
import { storeFile } from '../harness/store-file.ts'

const tokenKey = 'the-key-that-marks-tokens'

const headerForm = 'the Authorization header must be: Bearer <token>'
const noScheme = 'the token does not match any configured authentication method'
const refusesStrangers = 'this runtime rejects requests without credentials'

describe('Authorization header', () => {
  test.each([
    ['Bearer abc', 'abc'],
    ['bearer abc', 'abc'],
    ['BEARER   abc  ', 'abc'],
    ['Bearer a.b-c_d~e+f/g==', 'a.b-c_d~e+f/g=='],
    [`Bearer ${'x'.repeat(100_000)}`, 'x'.repeat(100_000)],
  ])('S5.1-01: %j contains a token', (header, token) => {
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
  ])('S5.1-02 S7.2-02: %j is rejected', header => {
    expect(() => bearerToken(header)).toThrow(
      expect.objectContaining({ code: 'unauthorized', message: headerForm }),
    )
  })

  test('any header either contains one token without spaces and commas, or is rejected with an error that does not repeat it', () => {
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

/** Creates a verifier for tokens that begin with `word`. It accepts only `<word>-good`. */
function createVerifier(
  word: string,
  expiresAtSeconds: number | null = null,
): TokenVerifier & { asked: string[] } {
  const received: string[] = []
  return {
    asked: received,
    verify(token) {
      received.push(token)
      if (!token.startsWith(word)) return undefined
      if (token !== `${word}-good`)
        return Promise.reject(new WbError('unauthorized', `the ${word} does not hold`))
      return Promise.resolve({ subject: { ...subject, id: word }, expiresAtSeconds })
    },
  }
}

const origin = 'https://wb.example.com'

function credentialsWith(fields: Partial<RequestCredentials>): RequestCredentials {
  return {
    authorization: null,
    cookie: null,
    client: '',
    requestId: 'r',
    siteOrigin: () => origin,
    ...fields,
  }
}

describe('S5.2-08: order of verifiers', () => {
  const [key, jwt] = [createVerifier('key'), createVerifier('jwt', 1_900_000_000)]
  const authenticate = createAuthenticate({
    mode: 'any',
    anonymousPolicy: 'allow',
    verifiers: [key, jwt],
    sessions: undefined,
  })
  const present = async (token: string) => authenticate(credentialsWith({ authorization: `Bearer ${token}` }))

  test('S2.1-01 S2.1-02 S2.1-03 S2.1-04: the verifier that recognizes the format of a token identifies the caller', async () => {
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

  test('a token that its verifier rejects is not passed to the next verifier', async () => {
    const before = jwt.asked.length
    await expect(present('key-bad')).rejects.toMatchObject({ message: 'the key does not hold' })
    expect(jwt.asked).toHaveLength(before)
  })

  test('S5.2-09 S7.2-03: a token of unknown format matches no authentication method', async () => {
    await expect(present('other')).rejects.toMatchObject({ code: 'unauthorized', message: noScheme })
  })
})

describe('S5.1-03: a session cookie as a bearer token', () => {
  const sessions = new SessionCookies({
    sealer: new Sealer(['a secret of the tests, 32 bytes up']),
    name: 'wb_session',
  })
  const jwt = createVerifier('jwt', 1_900_000_000)
  const authenticate = createAuthenticate({
    mode: 'oidc',
    anonymousPolicy: 'reject',
    verifiers: [jwt],
    sessions,
  })
  const present = async (fields: Partial<RequestCredentials>) => authenticate(credentialsWith(fields))
  const cookieOf = (accessToken: string, more = {}) =>
    sessions
      .write({ origin, cookies: null }, { accessToken, subject: 'jwt', issuedAt: 1, ...more }, 60)
      .map(line => line.split(';')[0])
      .join('; ')

  test('is checked by the verifier of its token, and shows whether the session can be refreshed', async () => {
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

  test('is ignored if it cannot be opened or was sealed for another site', async () => {
    const none = { code: 'unauthorized', message: refusesStrangers }
    await expect(present({ cookie: 'wb_session=v2.a.b.c' })).rejects.toMatchObject(none)
    await expect(present({ cookie: 'other=1' })).rejects.toMatchObject(none)
    const cookie = cookieOf('jwt-good')
    await expect(present({ cookie, siteOrigin: () => 'https://evil.example' })).rejects.toMatchObject(none)
  })

  test('is ignored if there is an Authorization header', async () => {
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

/** Opens a runtime in the given mode, with a bootstrap token if the mode allows one. */
function openInMode(mode: Mode, auth: object = {}, options: TestRuntimeOptions = {}): Promise<TestRuntime> {
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

/** Checks the status, code and headers that every unauthenticated request gets. */
async function expectUnauthorized(opened: TestRuntime, headers: Record<string, string>, message: string) {
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

describe('authentication modes', () => {
  test.each(forms)('S5.2-01 S1-05: disabled treats %j as anonymous', async headers => {
    const wb = await openInMode('disabled')
    expect((await wb.send(workspaces, undefined, headers)).status).toBe(200)
  })

  test('S2.2-04: disabled with anonymousPolicy reject requires a header, and does not verify it', async () => {
    const wb = await openInMode('disabled', { anonymousPolicy: 'reject' })
    await expectUnauthorized(wb, {}, refusesStrangers)
    await expectUnauthorized(wb, { cookie: 'wb_session=x' }, refusesStrangers)
    for (const headers of forms.slice(1))
      expect((await wb.send(workspaces, undefined, headers)).status).toBe(200)
  })

  test.each(verifyingModes)(
    'S5.2-12: mode %s with anonymousPolicy allow accepts a request without a header as anonymous',
    async mode => {
      const wb = await openInMode(mode)
      expect((await wb.send(workspaces)).status).toBe(200)
    },
  )

  test.each(modes)(
    'S2.2-04 S5.2-13 S7.2-01 S7.2-06 S7.2-07: mode %s with anonymousPolicy reject rejects a request without a header',
    async mode => {
      await expectUnauthorized(await openInMode(mode, { anonymousPolicy: 'reject' }), {}, refusesStrangers)
    },
  )

  test.each(verifyingModes)(
    'S5.1-02 S7.2-02 S7.2-07: mode %s rejects a header that is not a bearer token, even with anonymousPolicy allow',
    async mode => {
      const wb = await openInMode(mode)
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

  test.each(verifyingModes)(
    'S5.2-09 S5.2-02 S7.2-03: mode %s rejects tokens of other formats',
    async mode => {
      const wb = await openInMode(mode)
      for (const token of ['x', '0', 'x'.repeat(100_000), 'wb_live_', `${newToken(tokenKey).token}x`, 'a.b'])
        await expectUnauthorized(wb, bearer(token), noScheme)
    },
  )

  test('S5.2-02 S5.2-08: apiKey and any verify API keys, and oidc rejects them', async () => {
    const { token } = newToken(tokenKey)
    for (const mode of ['apiKey', 'any'] as const)
      await expectUnauthorized(await openInMode(mode), bearer(token), 'the token is not valid')
    await expectUnauthorized(await openInMode('oidc'), bearer(token), noScheme)
  })

  test('S5.2-02: apiKey rejects a JWT', async () => {
    await expectUnauthorized(await openInMode('apiKey'), bearer('eyJhbGciOiJub25lIn0.e30.x'), noScheme)
  })
})

describe('bootstrap token', () => {
  test.each(verifyingModes)(
    'S2.2-06 S5.2-10 S2.1-07: is an operator with all scopes in mode %s',
    async mode => {
      const wb = await openInMode(mode, { anonymousPolicy: 'reject' })
      expect((await wb.send('POST /api/v1/workspaces', { name: 'one' }, bearer(bootstrapToken))).status).toBe(
        201,
      )
      await expectUnauthorized(wb, bearer(`${bootstrapToken}x`), noScheme)
      await expectUnauthorized(wb, bearer(bootstrapToken.slice(0, -1)), noScheme)
    },
  )

  test('S2.2-06: prevents startup in mode disabled', async () => {
    await expect(openInMode('disabled', { bootstrapTokenRef: 'env:BOOT' })).rejects.toThrow(
      'auth.bootstrapTokenRef',
    )
  })

  test('S5.2-11: creates the first workspace and its first key, which works', async () => {
    const wb = await openInMode('apiKey', { anonymousPolicy: 'reject' })
    const operator = bearer(bootstrapToken)
    const made = await wb.send('POST /api/v1/workspaces', { name: 'first' }, operator)
    const keys = `/api/v1/workspaces/${made.body.workspaceId}/api-keys`
    const minted = await wb.send(`POST ${keys}`, { label: 'first', role: 'admin' }, operator)
    expect(minted.status).toBe(201)
    const key = bearer(String(minted.body.plaintext))
    expect((await wb.send(`GET ${keys}`, undefined, key)).status).toBe(200)
  })

  test('S6-02: is recorded in the audit trail on every use, with the request ID and without the token', async () => {
    const wb = await openInMode('apiKey', { anonymousPolicy: 'reject' })
    const file = storeFile(wb.dataDir)
    const uses = () => file.all("SELECT body FROM audit WHERE body ->> '$.action' = 'auth.bootstrap_use'")
    const answers = [
      await wb.send(workspaces, undefined, bearer(bootstrapToken)),
      await wb.send('POST /api/v1/workspaces', {}, bearer(bootstrapToken)),
    ]
    expect(answers.map(({ status }) => status)).toEqual([200, 400])
    await waitUntil(() => uses().length === 2)
    const records = uses().map(({ body }) => JSON.parse(String(body)))
    for (const [at, record] of records.entries())
      expect(record).toMatchObject({
        outcome: 'success',
        requestId: answers[at]!.headers.get('x-request-id'),
        subject: { type: 'bootstrap', id: 'bootstrap', label: 'bootstrap operator' },
        workspaceId: null,
        details: { scheme: 'bootstrap' },
      })
    expect(file.tablesContaining(bootstrapToken)).toEqual([])
  })

  test('S2.2-05: is configured as a reference to a variable or a file; without it no token is an operator', async () => {
    const folder = scratchDir()
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, 'boot'), `${bootstrapToken}\n`)
    const bootstrapTokenRef = `file:${join(folder, 'boot')}`
    const filed = await openInMode('apiKey', { anonymousPolicy: 'reject', bootstrapTokenRef })
    expect((await filed.send(workspaces, undefined, bearer(bootstrapToken))).status).toBe(200)
    const without = await openInMode('apiKey', { anonymousPolicy: 'reject', bootstrapTokenRef: null })
    await expectUnauthorized(without, bearer(bootstrapToken), noScheme)
    await expect(openInMode('apiKey', { bootstrapTokenRef: bootstrapToken })).rejects.toThrow(
      'auth.bootstrapTokenRef',
    )
  })

  test('S5.9-11: takes a new value after a restart, and the old value stops working', async () => {
    const before = await openInMode('apiKey', { anonymousPolicy: 'reject' })
    await before.close()
    const changed = 'another-bootstrap-token-0123456789'
    const { dataDir } = before
    const wb = await openInMode(
      'apiKey',
      { anonymousPolicy: 'reject' },
      { dataDir, environment: { BOOT: changed } },
    )
    await expectUnauthorized(wb, bearer(bootstrapToken), noScheme)
    expect((await wb.send(workspaces, undefined, bearer(changed))).status).toBe(200)
  })
})

test('guesses from one IPv6 network share a queue, and other networks have their own [security rule 10]', async () => {
  const wb = await openInMode('apiKey')
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
