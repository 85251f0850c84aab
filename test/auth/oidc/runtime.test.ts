import { describe, expect, test } from 'vitest'
import {
  audience,
  clients,
  type ProviderOptions,
  type RunningProvider,
  startProvider,
} from '../../harness/identity-provider.ts'
import { open, type TestRuntime, type TestRuntimeOptions } from '../../harness/runtime.ts'

interface Setting extends TestRuntimeOptions {
  mode?: 'oidc' | 'any'
  /** Fields of `auth.oidc`. */
  oidc?: object
  provider?: ProviderOptions
}

function configOf({ issuer }: Pick<RunningProvider, 'issuer'>, { mode = 'oidc', oidc = {} }: Setting = {}) {
  return { auth: { mode, anonymousPolicy: 'reject', oidc: { issuer, audience, ...oidc } } }
}

async function openWithProvider(setting: Setting = {}) {
  const idp = await startProvider(setting.provider)
  const opened = await open({ ...setting, server: true, config: configOf(idp, setting) })
  return { idp, opened }
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
const workspaces = '/api/v1/workspaces'

async function createWorkspace({ sendAsOperator }: TestRuntime, name = 'one'): Promise<string> {
  const made = await sendAsOperator(`POST ${workspaces}`, { name, kind: 'mock' })
  expect(made.status).toBe(201)
  return made.body.workspaceId as string
}

const messageOf = ({ body }: { body: Record<string, unknown> }) => (body.error as { message: string }).message

describe('accepted tokens', () => {
  test('S5.2-07 S9-08: a JWT from the provider works as a bearer token', async () => {
    const { idp, opened } = await openWithProvider()
    const token = await idp.sign({ name: 'Alice' })
    const me = await opened.send('GET /auth/me', undefined, bearer(token))
    expect(me).toMatchObject({
      status: 200,
      body: {
        id: 'alice',
        label: 'alice@example.test',
        type: 'oidc',
        workspaceScopes: null,
        scopes: null,
        role: null,
        canRefresh: false,
      },
    })
    expect((await opened.send(`GET ${workspaces}`, undefined, bearer(token))).status).toBe(200)
  })

  test('S2.1-05 S2.1-06 S2.2-16 S2.2-17 S2.2-18: claims are read under their configured names', async () => {
    const claims = { subject: 'oid', label: 'name', workspaceScopes: 'spaces' }
    const { idp, opened } = await openWithProvider({ oidc: { claims } })
    const token = await idp.sign({ oid: 'o-1', name: 'Alice', spaces: ['w1'] })
    const me = await opened.send('GET /auth/me', undefined, bearer(token))
    expect(me.body).toMatchObject({ id: 'o-1', label: 'Alice', workspaceScopes: ['w1'] })
  })

  test('a token without the label claim uses the subject ID as label [S2.1-06]', async () => {
    const { idp, opened } = await openWithProvider({ oidc: { claims: { label: 'name' } } })
    const me = await opened.send('GET /auth/me', undefined, bearer(await idp.sign({})))
    expect(me.body).toMatchObject({ id: 'alice', label: 'alice' })
  })

  test('S2.2-19 S2.2-20: workspaces can be an array, a text, null, or missing', async () => {
    const { idp, opened } = await openWithProvider()
    const [one, two] = [await createWorkspace(opened, 'one'), await createWorkspace(opened, 'two')]
    const reach = async (wb_workspace_scopes: unknown) => {
      const headers = bearer(await idp.sign({ wb_workspace_scopes }))
      const answers = [one, two].map(id => opened.send(`GET ${workspaces}/${id}`, undefined, headers))
      return (await Promise.all(answers)).map(({ status }) => status)
    }
    expect(await reach(null)).toEqual([200, 200])
    expect(await reach([one])).toEqual([200, 403])
    expect(await reach(two)).toEqual([403, 200])
    expect(await reach(`${one} ${two}`)).toEqual([200, 200])
    expect(await reach(undefined)).toEqual([403, 403])
    expect(await reach([])).toEqual([403, 403])
  })

  test('S5.2-08 S5.2-09: mode any accepts an API key and a JWT, and rejects other tokens', async () => {
    const { idp, opened } = await openWithProvider({ mode: 'any' })
    const id = await createWorkspace(opened)
    const minted = await opened.sendAsOperator(`POST ${workspaces}/${id}/api-keys`, {
      label: 'ci',
      scopes: ['read'],
    })
    const passes = async (token: string) =>
      (await opened.send(`GET ${workspaces}/${id}`, undefined, bearer(token))).status
    expect(await passes(minted.body.plaintext as string)).toBe(200)
    expect(await passes(await idp.sign())).toBe(200)
    for (const token of ['neither', 'a.b', 'a.b.', 'a.b.c.d', 'wb_live_short']) {
      const answer = await opened.send(`GET ${workspaces}/${id}`, undefined, bearer(token))
      expect(answer.status).toBe(401)
      expect(answer.headers.get('www-authenticate')).toMatch(/^Bearer/)
      expect(messageOf(answer)).toBe('the token does not match any configured authentication method')
    }
  })

  test('S5.2-08: mode oidc rejects an API key as an unknown method', async () => {
    const { opened } = await openWithProvider()
    const answer = await opened.send(
      'GET /auth/me',
      undefined,
      bearer(`wb_live_${'a'.repeat(12)}_${'b'.repeat(32)}`),
    )
    expect(answer.status).toBe(401)
    expect(messageOf(answer)).toBe('the token does not match any configured authentication method')
  })
})

describe('rejected tokens', () => {
  test('S2.2-09 S2.2-11 S2.2-15 S5.3-02 S5.3-05 S5.3-06 S5.3-07 S5.3-09 S5.3-10: get a short message with the reason', async () => {
    const { idp, opened } = await openWithProvider()
    const nowSeconds = Math.floor(Date.now() / 1_000)
    const tokens: [string, string][] = [
      ['the token is expired', await idp.sign({ exp: nowSeconds - 60 })],
      ['the token is not yet valid', await idp.sign({ nbf: nowSeconds + 60 })],
      ['the issuer of the token is not accepted', await idp.sign({ iss: `${idp.issuer}/` })],
      ['the audience of the token is not accepted', await idp.sign({ aud: 'another' })],
      ['the signature of the token was not verified', await idp.sign({}, {}, 'stolen')],
      ['the token is not an access token', await idp.sign({ at_hash: 'x' })],
      ['the token has no subject', await idp.sign({ sub: undefined })],
      ['the token is malformed', 'a.b.c'],
    ]
    for (const [message, token] of tokens) {
      const answer = await opened.send(`GET ${workspaces}`, undefined, bearer(token))
      expect(answer.status).toBe(401)
      expect(answer.headers.get('www-authenticate')).toMatch(/^Bearer/)
      expect(answer.body.error).toMatchObject({ code: 'unauthorized', message })
      expect(answer.text).not.toContain(token)
    }
  })

  test('S2.2-15: do not include expired ones within the configured clock tolerance', async () => {
    const { idp, opened } = await openWithProvider({ oidc: { clockToleranceSeconds: 120 } })
    const nowSeconds = Math.floor(Date.now() / 1_000)
    for (const claims of [{ exp: nowSeconds - 60 }, { nbf: nowSeconds + 60 }]) {
      const me = await opened.send('GET /auth/me', undefined, bearer(await idp.sign(claims)))
      expect(me.status).toBe(200)
    }
  })
})

describe('roles and scopes', () => {
  const roleMapping = {
    claim: 'groups',
    values: { 'wb-viewers': 'viewer', 'wb-editors': 'editor', 'wb-admins': 'admin' },
    default: 'viewer',
  }

  async function tier(setting: Setting, claims: object) {
    const { idp, opened } = await openWithProvider(setting)
    const id = await createWorkspace(opened)
    const headers = bearer(await idp.sign({ ...claims }))
    const read = await opened.send(`GET ${workspaces}/${id}`, undefined, headers)
    const write = await opened.send(`PATCH ${workspaces}/${id}`, { name: 'renamed' }, headers)
    const manage = await opened.send(`GET ${workspaces}/${id}/api-keys`, undefined, headers)
    const me = await opened.send('GET /auth/me', undefined, headers)
    return { passed: [read, write, manage].map(({ status }) => status), me: me.body }
  }

  test.each([
    ['viewer', 'wb-viewers', [200, 403, 403], ['read']],
    ['editor', ['wb-editors', 'wb-viewers'], [200, 200, 403], ['read', 'write']],
    ['admin', ['other', 'wb-admins', 'wb-viewers'], [200, 200, 200], ['read', 'write', 'manage']],
    ['viewer', ['other'], [200, 403, 403], ['read']],
  ])('S5.6-01 S2.2-21 S2.2-23 S2.2-24: %s from %j', async (role, groups, passed, scopes) => {
    expect(await tier({ oidc: { roleMapping } }, { groups })).toMatchObject({ passed, me: { role, scopes } })
  })

  test('S5.6-03: without a mapping, a token holds all scopes', async () => {
    expect(await tier({}, { groups: ['wb-viewers'] })).toMatchObject({
      passed: [200, 200, 200],
      me: { role: null, scopes: null },
    })
  })

  test('S2.2-22: an unknown role in the configuration prevents startup', async () => {
    const { issuer } = await startProvider()
    const values = { 'wb-owners': 'owner' }
    await expect(
      open({
        server: true,
        config: configOf({ issuer }, { oidc: { roleMapping: { ...roleMapping, values } } }),
      }),
    ).rejects.toThrow('auth.oidc.roleMapping.values.wb-owners')
  })
})

describe('startup', () => {
  test.each(['issuer', 'audience'])('S2.2-08 S2.2-10: fails without %s', async name => {
    const { issuer } = await startProvider()
    const config = configOf({ issuer }, { oidc: { [name]: undefined } })
    await expect(open({ server: true, config })).rejects.toThrow(`auth.oidc.${name}`)
  })

  test('S5.3-12: fails if the provider is down, and reports the address', async () => {
    const idp = await startProvider()
    await idp.stop()
    await expect(open({ server: true, config: configOf(idp) })).rejects.toMatchObject({
      code: 'validation_error',
      message: `auth.oidc.issuer: no identity provider was found at ${idp.issuer}/.well-known/openid-configuration: it refused the connection`,
    })
  })

  test('S5.3-12: of a command other than the server does not need the provider', async () => {
    const idp = await startProvider()
    await idp.stop()
    const { sendAsOperator } = await open({ config: configOf(idp) })
    expect((await sendAsOperator(`GET ${workspaces}`)).status).toBe(200)
    expect(idp.requests).toEqual([])
  })

  test('S5.3-03 S5.3-11 S2.2-13: looks up the key set address, and loads the keys with the first token', async () => {
    const { idp, opened } = await openWithProvider()
    expect(idp.requests.map(({ path }) => path)).toEqual(['/.well-known/openid-configuration'])
    const headers = bearer(await idp.sign())
    expect((await opened.send('GET /auth/me', undefined, headers)).status).toBe(200)
    expect(idp.requests.map(({ path }) => path).slice(1)).toEqual(['/jwks'])
  })

  test('S2.2-12 S2.2-13 S5.3-11: requests only the keys if jwksUri is set', async () => {
    const idp = await startProvider()
    const jwksUri = idp.keySetUrl.href
    const opened = await open({ server: true, config: configOf(idp, { oidc: { jwksUri } }) })
    const me = await opened.send('GET /auth/me', undefined, bearer(await idp.sign()))
    expect(me.status).toBe(200)
    expect(idp.requests.map(({ path }) => path)).toEqual(['/jwks'])
  })

  test('S5.9-09: uses the current value of the client secret reference', async () => {
    const { id, secret } = clients.confidential
    const client = { clientId: id, clientSecretRef: 'env:CLIENT_SECRET' }
    const { idp, opened } = await openWithProvider({
      oidc: { client },
      environment: { CLIENT_SECRET: 'before' },
    })
    const before = await opened.send('POST /auth/device/authorize', {})
    expect(before.status).toBe(502)
    expect(before.text).not.toContain('before')
    await opened.close()
    const after = await open({
      dataDir: opened.dataDir,
      server: true,
      config: configOf(idp, { oidc: { client } }),
      environment: { CLIENT_SECRET: secret },
    })
    expect((await after.send('POST /auth/device/authorize', {})).status).toBe(200)
  })
})

describe('provider changes while the server runs', () => {
  test('S5.3-04: a key that the provider adds works without a restart', async () => {
    const { idp, opened } = await openWithProvider()
    const status = async (token: string) =>
      (await opened.send('GET /auth/me', undefined, bearer(token))).status
    const old = await idp.sign()
    expect(await status(old)).toBe(200)
    await idp.rotateKeys('kept')
    expect(await status(await idp.sign())).toBe(200)
    expect(await status(old)).toBe(200)
  })

  test('if the provider goes down, sessions continue and requests that need it get an error', async () => {
    const { idp, opened } = await openWithProvider()
    const status = async (token: string) =>
      (await opened.send('GET /auth/me', undefined, bearer(token))).status
    const token = await idp.sign()
    expect(await status(token)).toBe(200)
    await idp.stop()
    expect(await status(token)).toBe(200)
    expect(await status(await idp.sign({ sub: 'bob' }))).toBe(200)
    await idp.rotateKeys('kept')
    const unknown = await opened.send('GET /auth/me', undefined, bearer(await idp.sign()))
    expect(unknown.status).toBe(401)
    expect(messageOf(unknown)).toContain('the keys of the identity provider are unavailable')
    expect(opened.loggedProblems.map(({ facts }) => facts.why)).toContain('it refused the connection')
  })
})
