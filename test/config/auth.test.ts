// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders are what is tested
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, describe, expect, test } from 'vitest'
import { type AuthSecrets, readAuthSecrets } from '../../src/config/auth-secrets.ts'
import { createEnvironment } from '../../src/config/config-environment.ts'
import { describeConfig } from '../../src/config/describe-config.ts'
import { type ConfigFlags, type LoadedConfig, loadConfig } from '../../src/config/load-config.ts'
import { WbError } from '../../src/contract/errors.ts'

const folder = mkdtempSync(join(tmpdir(), 'wb-auth-config-'))
afterAll(() => rmSync(folder, { recursive: true }))
const path = join(folder, 'workbase.yaml')

type Variables = Readonly<Record<string, string>>

function load(file: object | string, variables: Variables = {}, flags: ConfigFlags = {}): LoadedConfig {
  writeFileSync(path, typeof file === 'string' ? file : JSON.stringify({ version: 1, ...file }))
  return loadConfig({ path }, createEnvironment(variables), flags)
}

/** Returns the problems as `key: message`, and checks that the error shows no secret. */
function problemsOf(act: () => unknown): string[] {
  try {
    act()
  } catch (error) {
    if (!(error instanceof WbError)) throw error
    expect(JSON.stringify([error.message, error.hint, error.facts])).not.toContain('hunter2')
    const problems = error.facts.problems as { key: string; message: string }[]
    expect(error.message).toContain(problems[0]!.key)
    return problems.map(({ key, message }) => `${key}: ${message}`)
  }
  return []
}

const oidc = { issuer: 'https://id.example', audience: 'wb' }
const withOidc = (more: object) => ({ auth: { mode: 'oidc', oidc: { ...oidc, ...more } } })
const withClient = (more: object, rest: object = {}) => ({
  ...withOidc({ client: { clientId: 'c', ...more } }),
  ...rest,
})
const loadOidc = (file: object) => load(file).config.auth.oidc!
const problemsIn = (file: object) => problemsOf(() => load(file))

describe('the auth section', () => {
  test('S1-04 S2.2-01 S2.2-03: defaults to no authentication, and accepts only known modes and policies', () => {
    expect(load('version: 1').config.auth).toMatchObject({ mode: 'disabled', anonymousPolicy: 'allow' })
    for (const mode of ['disabled', 'apiKey', 'oidc', 'any'])
      expect(load({ auth: { mode, oidc } }).config.auth.mode).toBe(mode)
    for (const mode of ['', 'none', 'apikey', 'ApiKey', 'OIDC', 'both', null, true, ['any']])
      expect(problemsIn({ auth: { mode } }), String(mode)).toEqual([expect.stringMatching(/^auth\.mode: /)])
    for (const anonymousPolicy of ['allow', 'reject'])
      expect(load({ auth: { anonymousPolicy } }).config.auth.anonymousPolicy).toBe(anonymousPolicy)
    for (const anonymousPolicy of ['', 'deny', 'Reject', null, false])
      expect(problemsIn({ auth: { anonymousPolicy } })).toEqual([
        expect.stringMatching(/^auth\.anonymousPolicy: /),
      ])
  })

  test('S2.2-05 S2.2-34: accepts references as credentials, and rejects a literal by its key', () => {
    const keys: [key: string, file: (ref: unknown) => object][] = [
      ['auth.bootstrapTokenRef', ref => ({ auth: { mode: 'apiKey', bootstrapTokenRef: ref } })],
      ['auth.oidc.client.clientSecretRef', ref => withClient({ clientSecretRef: ref })],
      ['auth.oidc.client.sessionSecretRef', ref => withClient({ sessionSecretRef: ref })],
      ['auth.oidc.client.sessionSecretRef', ref => withClient({ sessionSecretRef: ['env:A', ref] })],
    ]
    for (const [key, file] of keys) {
      for (const ref of ['env:A', 'env:_a1', 'file:/run/secrets/a'])
        expect(problemsIn(file(ref)), `${key} ${ref}`).toEqual([])
      for (const ref of [
        'hunter2',
        'hunter2hunter2hunter2hunter2hunter2',
        'env:',
        'env:1A',
        'env:A=hunter2',
        'ENV:A',
        'file:hunter2',
        'file:/a/../hunter2',
        'vault:hunter2',
        'astra-cli:p:d:token',
        'https://hunter2',
        7,
        ' env:A',
      ])
        expect(problemsIn(file(ref)), `${key} ${ref}`).toEqual([
          expect.stringMatching(
            new RegExp(`^${key.replaceAll('.', '\\.')}(?:\\[1\\])?: (?:must be a secret reference|.*string)`),
          ),
        ])
    }
    expect(problemsIn(withClient({ sessionSecretRef: [] }))).toEqual([
      'auth.oidc.client.sessionSecretRef: must have at least one entry',
    ])
    const expanded = 'version: 1\nauth: {mode: apiKey, bootstrapTokenRef: "${TOKEN}"}'
    expect(problemsOf(() => load(expanded, { TOKEN: 'hunter2'.repeat(5) }))).toEqual([
      'auth.bootstrapTokenRef: must be a secret reference: env:NAME or file:/absolute/path',
    ])
  })

  test('S2.2-06: accepts a bootstrap token only in modes that verify tokens', () => {
    const withToken = (mode: string) => ({ auth: { mode, bootstrapTokenRef: 'env:B', oidc } })
    for (const mode of ['apiKey', 'oidc', 'any']) expect(problemsIn(withToken(mode))).toEqual([])
    expect(problemsIn(withToken('disabled'))).toEqual([expect.stringMatching(/^auth\.bootstrapTokenRef: /)])
  })

  test('S2.2-08 S2.2-10: requires issuer and audience in the modes that use them', () => {
    for (const mode of ['oidc', 'any']) {
      expect(problemsIn({ auth: { mode } })).toEqual([
        `auth.oidc: issuer and audience are required with auth.mode ${mode}`,
      ])
      expect(problemsIn({ auth: { mode, oidc: {} } })).toEqual([
        'auth.oidc.issuer: is required',
        'auth.oidc.audience: is required',
      ])
    }
    for (const mode of ['disabled', 'apiKey']) expect(problemsIn({ auth: { mode } })).toEqual([])
    for (const audience of ['a', ['a'], ['a', 'b']])
      expect(loadOidc(withOidc({ audience })).audience).toEqual(audience)
    for (const audience of ['', [], [''], [1], {}, null])
      expect(problemsIn(withOidc({ audience })), JSON.stringify(audience)).toEqual([
        expect.stringMatching(/^auth\.oidc\.audience(?:\[0\])?: /),
      ])
  })

  test.each(['issuer', 'jwksUri'])(
    'S2.2-08 S2.2-12: %s must be https, or http on this machine, and is kept unchanged [security rule 15]',
    name => {
      const takes = (url: unknown) => problemsIn(withOidc({ [name]: url })).length === 0
      for (const url of [
        'https://id.example',
        'https://id.example/',
        'https://id.example/realms/a',
        'http://localhost:8080',
        'http://127.0.0.1:1',
        'http://[::1]:1/a',
      ]) {
        expect(takes(url), url).toBe(true)
        expect(loadOidc(withOidc({ [name]: url }))[name as 'issuer']).toBe(url)
      }
      for (const url of [
        'http://id.example',
        'http://localhost.example',
        'http://127.0.0.1.example',
        'http://10.0.0.1',
        'ftp://id.example',
        'id.example',
        'https://u:hunter2@id.example',
        '',
        7,
      ])
        expect(problemsIn(withOidc({ [name]: url })), String(url)).toEqual([
          expect.stringMatching(new RegExp(`^auth\\.oidc\\.${name}: `)),
        ])
    },
  )

  test('S2.2-08 S2.2-12: rejects an issuer with a query, and discovers the key set by default', () => {
    for (const issuer of ['https://id.example?a', 'https://id.example/#a'])
      expect(problemsIn(withOidc({ issuer }))).toEqual([
        expect.stringMatching(/^auth\.oidc\.issuer: .*query/),
      ])
    expect(loadOidc(withOidc({})).jwksUri).toBeNull()
    expect(loadOidc(withOidc({ jwksUri: null })).jwksUri).toBeNull()
    expect(loadOidc(withOidc({ jwksUri: 'https://id.example/k?a=1' })).jwksUri).toBe(
      'https://id.example/k?a=1',
    )
  })

  test('S2.2-14: accepts a clock skew of 0 to 300 whole seconds, 30 by default', () => {
    expect(loadOidc(withOidc({})).clockToleranceSeconds).toBe(30)
    for (const seconds of [0, 300, '45'])
      expect(loadOidc(withOidc({ clockToleranceSeconds: seconds })).clockToleranceSeconds).toBe(
        Number(seconds),
      )
    for (const seconds of [-1, 301, 1.5, '30s', null])
      expect(problemsIn(withOidc({ clockToleranceSeconds: seconds }))).toEqual([
        expect.stringMatching(/^auth\.oidc\.clockToleranceSeconds: /),
      ])
  })

  test('S2.2-16 S2.2-17 S2.2-18: claims have configurable names with defaults', () => {
    expect(loadOidc(withOidc({})).claims).toEqual({
      subject: 'sub',
      label: 'email',
      workspaceScopes: 'wb_workspace_scopes',
    })
    const claims = { subject: 'oid', label: 'name', workspaceScopes: 'https://wb.example/ws' }
    expect(loadOidc(withOidc({ claims })).claims).toEqual(claims)
    for (const name of Object.keys(claims))
      expect(problemsIn(withOidc({ claims: { [name]: '' } }))).toEqual([
        `auth.oidc.claims.${name}: must not be empty`,
      ])
  })

  test('S2.2-21 S2.2-22: role mappings require a claim and known roles', () => {
    const mapping = { claim: 'groups', values: { readers: 'viewer', staff: 'editor', root: 'admin' } }
    expect(loadOidc(withOidc({})).roleMapping).toBeNull()
    expect(loadOidc(withOidc({ roleMapping: mapping })).roleMapping).toEqual({
      ...mapping,
      default: 'viewer',
    })
    const invalid: [key: string, more: object][] = [
      ['values.staff', { values: { staff: 'owner' } }],
      ['values["a b"]', { values: { 'a b': 'Admin' } }],
      ['values', { values: undefined }],
      ['claim', { claim: undefined }],
      ['default', { default: 'none' }],
    ]
    for (const [key, more] of invalid) {
      const [problem, ...others] = problemsIn(withOidc({ roleMapping: { ...mapping, ...more } }))
      expect(problem).toContain(`auth.oidc.roleMapping.${key}: `)
      expect(others).toEqual([])
    }
  })
})

describe('the client section', () => {
  test('S2.2-25 S2.2-26 S2.2-27 S2.2-29 S2.2-30 S2.2-31: requires a client ID, and has defaults for the rest', () => {
    expect(loadOidc(withOidc({})).client).toBeNull()
    expect(loadOidc(withClient({})).client).toEqual({
      clientId: 'c',
      clientSecretRef: null,
      redirectPath: '/auth/callback',
      postLogoutPath: '/',
      scopes: ['openid', 'profile', 'email'],
      resource: null,
      sessionCookieName: 'wb_session',
      sessionSecretRef: null,
    })
    for (const clientId of [undefined, '', null, 7])
      expect(problemsIn(withClient({ clientId }))).toEqual([
        expect.stringMatching(/^auth\.oidc\.client\.clientId: /),
      ])
  })

  const expectAccepted = (name: string, values: readonly unknown[], more: object = {}) => {
    for (const value of values)
      expect(problemsIn(withClient({ [name]: value }, more)), JSON.stringify(value)).toEqual([])
  }
  const expectRejected = (name: string, values: readonly unknown[], more: object = {}) => {
    for (const value of values)
      expect(problemsIn(withClient({ [name]: value }, more)), JSON.stringify(value)).toEqual([
        expect.stringMatching(new RegExp(`^auth\\.oidc\\.client\\.${name}[\\[\\]0-9]*: `)),
      ])
  }

  test('S2.2-27: the callback is a path or an absolute URL', () => {
    expectAccepted('redirectPath', [
      '/auth/callback',
      '/a',
      '/',
      'https://wb.example/cb',
      'http://localhost:1/cb',
    ])
    expectRejected('redirectPath', [
      '',
      'auth/callback',
      '//evil.example/cb',
      '/\\evil.example',
      '/a/../b',
      '/a b',
      '/a\tb',
      '/a?b=c',
      '/a#b',
      'https://wb.example/cb?a=b',
      'https://wb.example/cb#',
      'https://u:hunter2@wb.example/cb',
      'javascript:alert(1)',
      'myapp:/cb',
      null,
    ])
  })

  test('S2.2-29: the browser stays on this origin after sign-out', () => {
    expectAccepted('postLogoutPath', ['/', '/bye', '/bye?now=1', '/#bye', '/a//b'])
    expectRejected('postLogoutPath', [
      '',
      'bye',
      'https://evil.example/',
      '//evil.example',
      '/\\evil.example',
      '\\\\evil.example',
      '/\t/evil.example',
      '/.//evil.example',
      'javascript:alert(1)',
      null,
    ])
  })

  test('S2.2-29: a browser resolves every accepted path on the same origin', () => {
    const text = fc
      .array(
        fc.constantFrom(
          '/',
          '\\',
          '.',
          '..',
          '%2f',
          '%5c',
          '\t',
          '\n',
          '@',
          'evil.example',
          ':',
          '?',
          '#',
          'a',
        ),
      )
      .map(parts => parts.join(''))
    fc.assert(
      fc.property(text, tail => {
        const target = `/${tail}`
        if (problemsIn(withClient({ postLogoutPath: target })).length > 0) return
        const once = new URL(target, 'https://wb.example')
        expect(once.origin).toBe('https://wb.example')
        expect(new URL(once.pathname, 'https://wb.example').origin).toBe('https://wb.example')
      }),
    )
  })

  test('S2.2-30: scopes are a list without spaces in its items', () => {
    expectAccepted('scopes', [['openid'], ['openid', 'api://wb/.default', 'offline_access']])
    expectRejected('scopes', [[], [''], ['openid profile'], ['a"b'], ['a\\b'], 'openid', null, [1]])
  })

  test('S2.2-31: accepts cookie names that every browser accepts, and prefixes only with https', () => {
    expectAccepted('sessionCookieName', ['wb_session', 'a', 'x'.repeat(64), '__wb', 'a.b-c'])
    expectRejected('sessionCookieName', ['', 'a b', 'a=b', 'a;b', 'a,b', 'ä', '"a"', 'x'.repeat(65), null])
    const prefixed = ['__Host-wb', '__Secure-wb']
    expectRejected('sessionCookieName', prefixed)
    expectRejected('sessionCookieName', prefixed, { runtime: { publicOrigin: 'http://wb.example' } })
    const safe = { runtime: { publicOrigin: 'https://wb.example' } }
    expectAccepted('sessionCookieName', prefixed, safe)
    expectRejected('sessionCookieName', ['__host-wb', '__HOST-wb', '__secure-wb'], safe)
  })
})

describe('referenced secrets', () => {
  const file = (more: object = {}) => ({
    auth: {
      mode: 'any',
      bootstrapTokenRef: 'env:B',
      oidc: {
        ...oidc,
        client: { clientId: 'c', clientSecretRef: 'env:C', sessionSecretRef: ['env:S', 'env:T'] },
      },
      ...more,
    },
  })
  const good: Variables = { B: 'b'.repeat(32), C: 'c', S: 's'.repeat(32), T: 't'.repeat(32) }
  const secretsOf = (variables: Variables, more?: object): AuthSecrets =>
    readAuthSecrets(load(file(more)).config, createEnvironment(variables))
  const faults = (variables: Variables, more?: object) =>
    problemsOf(() => secretsOf({ ...good, ...variables }, more))

  test('are read once, with session secrets in order', () => {
    expect(secretsOf(good)).toEqual({
      bootstrapToken: good.B,
      clientSecret: 'c',
      sessionSecrets: [good.S, good.T],
    })
  })

  test('S2.2-07 S8-13: rejects a bootstrap token of 31 characters and accepts 32, regardless of bytes', () => {
    const short = ['auth.bootstrapTokenRef: the secret must have at least 32 characters']
    for (const character of ['b', 'é', '語', '😀']) {
      expect(faults({ B: character.repeat(31) }), character).toEqual(short)
      expect(faults({ B: character.repeat(32) }), character).toEqual([])
    }
    expect(faults({ B: '😀'.repeat(16) })).toEqual(short)
  })

  test('S2.2-32 S8-14: rejects a session secret of 31 bytes and accepts 32, regardless of characters', () => {
    const short = ['auth.oidc.client.sessionSecretRef[1]: the secret must have at least 32 bytes']
    for (const [secret, rest] of [
      ['s'.repeat(31), 's'],
      [`${'é'.repeat(15)}s`, 's'],
      [`${'語'.repeat(10)}s`, 's'],
      [`${'😀'.repeat(7)}語`, 's'],
    ] as const) {
      expect(Buffer.byteLength(secret)).toBe(31)
      expect(faults({ T: secret }), secret).toEqual(short)
      expect(faults({ T: secret + rest }), secret).toEqual([])
    }
    const single = { oidc: { ...oidc, client: { clientId: 'c', sessionSecretRef: 'env:T' } } }
    expect(faults({ T: 'short' }, single)).toEqual([
      'auth.oidc.client.sessionSecretRef: the secret must have at least 32 bytes',
    ])
    expect(faults({ T: '😀'.repeat(8) }, single)).toEqual([])
  })

  test('rejects a bootstrap token that a header cannot contain', () => {
    for (const between of [' ', '\n', '\t', ',', '\0'])
      expect(faults({ B: 'b'.repeat(16) + between + 'b'.repeat(16) }), JSON.stringify(between)).toEqual([
        'auth.bootstrapTokenRef: the secret must not contain white space or commas',
      ])
  })

  test('lists every missing or short secret without its value, with the first one in the message', () => {
    expect(problemsOf(() => secretsOf({ B: 'hunter2', S: 'hunter2', T: 'hunter2' }))).toEqual([
      'auth.bootstrapTokenRef: the secret must have at least 32 characters',
      'auth.oidc.client.clientSecretRef: env:C is not set',
      'auth.oidc.client.sessionSecretRef[0]: the secret must have at least 32 bytes',
      'auth.oidc.client.sessionSecretRef[1]: the secret must have at least 32 bytes',
    ])
  })

  test('does not read secrets of an unused provider', () => {
    const nothing = { bootstrapToken: undefined, clientSecret: undefined, sessionSecrets: [] }
    expect(secretsOf({ B: good.B! }, { mode: 'apiKey' })).toEqual({ ...nothing, bootstrapToken: good.B })
    expect(secretsOf({}, { mode: 'disabled', bootstrapTokenRef: null })).toEqual(nothing)
    expect(secretsOf({ B: good.B! }, { oidc })).toEqual({ ...nothing, bootstrapToken: good.B })
  })
})

describe('warnings', () => {
  const warningsOf = (file: object, flags?: ConfigFlags) => load(file, {}, flags).warnings
  const rejecting = { anonymousPolicy: 'reject' }

  test('are not issued for usual configurations', () => {
    expect(load('version: 1').warnings).toEqual([])
    expect(warningsOf({ auth: { mode: 'apiKey', ...rejecting } })).toEqual([])
    expect(
      warningsOf({ auth: { mode: 'any', ...rejecting, oidc: { ...oidc, client: { clientId: 'c' } } } }),
    ).toEqual([])
  })

  test('warns about a mode that verifies credentials with a policy that allows anonymous callers', () => {
    for (const mode of ['apiKey', 'oidc', 'any'])
      expect(warningsOf({ auth: { mode, oidc: mode === 'apiKey' ? null : oidc } })).toEqual([
        'auth.anonymousPolicy is allow: callers without a credential pass every check, for any auth.mode; set it to reject',
      ])
  })

  test('S2.2-25: warns about a provider in a mode that does not use it', () => {
    const { auth } = withClient({ clientSecretRef: 'env:NONE' })
    for (const mode of ['disabled', 'apiKey'])
      expect(warningsOf({ auth: { ...auth, mode, ...rejecting } })).toContain(
        `auth.oidc has no effect while auth.mode is ${mode}, so no caller can sign in with it`,
      )
  })

  test('warns about a policy that protects nothing, and an address that needs --allow-open-access', () => {
    expect(warningsOf({ auth: rejecting })).toEqual([
      'auth.anonymousPolicy is reject, which protects nothing while auth.mode is disabled, because any token is accepted; set auth.mode',
    ])
    const openBind = [expect.stringContaining('runtime.host lets other machines connect')]
    expect(warningsOf({ runtime: { host: '0.0.0.0' } })).toEqual(openBind)
    expect(warningsOf({}, { host: '192.0.2.1' })).toEqual(openBind)
    expect(warningsOf({ runtime: { host: '0.0.0.0' }, auth: { acknowledgeOpenAccess: true } })).toEqual([])
    expect(warningsOf({ runtime: { host: '0.0.0.0' }, auth: { mode: 'apiKey', ...rejecting } })).toEqual([])
  })

  test('warns if any peer can act as a trusted proxy and others can connect', () => {
    const word = 'runtime.trustProxyHeaders is true: '
    const auth = { mode: 'apiKey', ...rejecting }
    const trusting = (trustProxyHeaders: unknown, host?: string) => ({
      auth,
      runtime: { trustProxyHeaders, host },
    })
    expect(warningsOf(trusting(true, '0.0.0.0'))).toEqual([expect.stringContaining(word)])
    expect(warningsOf(trusting(true), { host: '192.0.2.1' })).toEqual([expect.stringContaining(word)])
    expect(warningsOf(trusting(true, '0.0.0.0'), { host: '127.0.0.1' })).toEqual([])
    expect(warningsOf(trusting(true))).toEqual([])
    expect(warningsOf(trusting(['10.0.0.1'], '0.0.0.0'))).toEqual([])
  })

  test('warns about a public origin that does not match sign-in', () => {
    const at = (publicOrigin: string, client: object = {}) =>
      warningsOf({
        runtime: { publicOrigin },
        auth: { ...withClient(client).auth, ...rejecting },
      })
    expect(at('https://wb.example', { redirectPath: 'https://wb.example/cb' })).toEqual([])
    expect(at('https://wb.example', { redirectPath: 'https://other.example/cb' })).toEqual([
      'auth.oidc.client.redirectPath does not have the origin of runtime.publicOrigin',
    ])
    expect(at('http://wb.example')).toEqual([expect.stringMatching(/^runtime\.publicOrigin is http, /)])
    expect(at('http://localhost:8787')).toEqual([])
  })
})

describe('open access [security rule 2]', () => {
  test('is allowed unless acknowledgeOpenAccess is false and the store is persistent', () => {
    const key = 'auth.acknowledgeOpenAccess'
    const open = [{ mode: 'disabled' }, { mode: 'apiKey' }, { mode: 'apiKey', anonymousPolicy: 'allow' }]
    for (const auth of open) {
      for (const acknowledgeOpenAccess of [true, null, undefined])
        expect(problemsIn({ auth: { ...auth, acknowledgeOpenAccess } })).toEqual([])
      const denied = { auth: { ...auth, acknowledgeOpenAccess: false } }
      expect(problemsIn(denied)).toEqual([expect.stringContaining(`${key}: is false`)])
      expect(problemsIn({ ...denied, controlPlane: { driver: 'memory' } })).toEqual([])
    }
    expect(
      problemsIn({ auth: { mode: 'apiKey', anonymousPolicy: 'reject', acknowledgeOpenAccess: false } }),
    ).toEqual([])
    for (const word of ['yes', 1, 'TRUE'])
      expect(problemsIn({ auth: { acknowledgeOpenAccess: word } })).toEqual([
        expect.stringContaining(`${key}: `),
      ])
  })

  test('production rejects open access, generated session secrets and an unencrypted origin', () => {
    const production = (runtime: object, auth: object) => ({
      runtime: { environment: 'production', ...runtime },
      auth,
    })
    const keysOf = (file: object) => problemsIn(file).map(problem => problem.split(': ')[0])
    const login = (client: object) => ({
      mode: 'any',
      anonymousPolicy: 'reject',
      oidc: { ...oidc, client: { clientId: 'c', ...client } },
    })
    const https = { publicOrigin: 'https://wb.example' }
    expect(keysOf(production({}, {}))).toEqual(['auth.mode', 'auth.anonymousPolicy'])
    expect(keysOf(production({}, { acknowledgeOpenAccess: true }))).toEqual([
      'auth.mode',
      'auth.anonymousPolicy',
    ])
    expect(keysOf(production({}, { mode: 'apiKey' }))).toEqual(['auth.anonymousPolicy'])
    expect(keysOf(production({}, login({})))).toEqual([
      'auth.oidc.client.sessionSecretRef',
      'runtime.publicOrigin',
    ])
    expect(keysOf(production(https, login({})))).toEqual(['auth.oidc.client.sessionSecretRef'])
    for (const sessionSecretRef of ['env:S', ['env:S', 'env:T']])
      expect(keysOf(production(https, login({ sessionSecretRef })))).toEqual([])
    expect(
      keysOf(production({ publicOrigin: 'http://wb.example' }, login({ sessionSecretRef: 'env:S' }))),
    ).toEqual(['runtime.publicOrigin'])
  })
})

test('config show prints references, including each of a list, and no values', () => {
  const { config, sources } = load(
    withClient({ clientSecretRef: 'file:/run/c', sessionSecretRef: ['env:S', 'env:T'] }),
    { S: 'hunter2', T: 'hunter2' },
  )
  const rows = describeConfig(config, sources)
  const prefix = 'auth.oidc.client.'
  expect(rows).toContainEqual({ key: `${prefix}clientSecretRef`, value: 'file:/run/c', source: 'file' })
  expect(rows).toContainEqual({ key: `${prefix}sessionSecretRef[0]`, value: 'env:S', source: 'file' })
  expect(rows).toContainEqual({ key: `${prefix}sessionSecretRef[1]`, value: 'env:T', source: 'file' })
  expect(JSON.stringify(rows)).not.toContain('hunter2')
})
