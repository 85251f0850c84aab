import { expect, test } from 'vitest'
import { openEmbeddedStore } from '../../src/storage/open.ts'
import { tables } from '../../src/storage/tables.ts'
import { clients } from '../harness/identity-provider.ts'
import { waitUntil } from '../harness/runtime.ts'
import { redirectUri, setUpMcpSignIn } from './sign-in-setup.ts'

const signedOut = { signedIn: false, scopes: null, expiresAt: null, canRefresh: false }
const unsigned = { signedIn: false }

/** Bodies of the token requests with one grant type. */
function tokenRequests(
  { provider }: Pick<Awaited<ReturnType<typeof setUpMcpSignIn>>, 'provider'>,
  grant: string,
) {
  return provider.requests.filter(({ path, form }) => path === '/token' && form.get('grant_type') === grant)
}

test('an agent calls the tool with the token of the signed-in caller', async () => {
  const stage = await setUpMcpSignIn()
  const { sendAs, ann, bob, path, server } = stage
  const signedIn = await stage.signIn(ann, 'ann')
  const status = {
    signedIn: true,
    scopes: ['tools'],
    expiresAt: '2026-01-01T00:05:00.000Z',
    canRefresh: true,
  }
  expect([signedIn.status, signedIn.body]).toEqual([200, status])
  expect((await sendAs(ann, `GET ${path}/sign-in`)).body).toEqual(status)
  expect((await stage.allowTool(ann)).status).toBe(200)
  await stage.ask(ann)
  expect(stage.toolResults()).toEqual([expect.stringContaining('whoami')])
  expect(new Set(server.callers)).toEqual(new Set(['ann']))
  expect((await stage.signIn(bob, 'bob')).status).toBe(200)
  const before = server.callers.length
  await stage.ask(bob)
  expect(stage.toolResults()).toHaveLength(2)
  expect(new Set(server.callers.slice(before))).toEqual(new Set(['bob']))
})

test('the sign-in uses PKCE and the resource parameter, with a client that it registered', async () => {
  const stage = await setUpMcpSignIn()
  const { body } = await stage.sendAs(stage.ann, `POST ${stage.path}/sign-in`, { redirectUri })
  const { searchParams, origin } = new URL(String(body.authorizationUrl))
  expect(origin).toBe(stage.provider.issuer)
  expect(Object.fromEntries(searchParams)).toMatchObject({
    response_type: 'code',
    code_challenge_method: 'S256',
    redirect_uri: redirectUri,
    resource: stage.server.url,
    state: body.state,
  })
  expect(searchParams.get('scope')!.split(' ')).toContain('tools')
  expect(stage.provider.count('/reg')).toBe(1)
  expect(body.expiresAt).toBe('2026-01-01T00:10:00.000Z')
})

test('a configured client is used, and its secret is sent to a released host only', async () => {
  const { id, secret } = clients.confidential
  const stage = await setUpMcpSignIn(
    { oauthClientId: id, oauthClientSecretRef: 'env:ISSUES_SECRET', oauthScopes: ['tools'] },
    {},
    { ISSUES_SECRET: secret },
  )
  const refused = await stage.signIn(stage.ann, 'ann')
  expect([refused.status, refused.text]).toEqual([
    502,
    expect.stringContaining('wb services allow env:ISSUES_SECRET'),
  ])
  expect(tokenRequests(stage, 'authorization_code')).toEqual([])
  const host = new URL(stage.provider.issuer).host
  await stage.sendAsOperator('POST /api/v1/secret-releases', { ref: 'env:ISSUES_SECRET', host })
  const signedIn = await stage.signIn(stage.ann, 'ann')
  expect(signedIn.status, signedIn.text).toBe(200)
  expect(stage.provider.count('/reg')).toBe(0)
  expect(tokenRequests(stage, 'authorization_code')[0]!.authorization).toMatch(/^Basic /)
  await stage.sendAs(stage.ann, `DELETE ${stage.path}/sign-in`)
  const revocation = stage.provider.requests.find(({ path }) => path === '/token/revocation')
  expect(revocation?.authorization).toBe(`Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`)
})

test('a caller who is not signed in gets an answer without the tool and a hint to sign in', async () => {
  const stage = await setUpMcpSignIn()
  const { sendAs, ann, bob, path, server } = stage
  await stage.signIn(ann, 'ann')
  await stage.allowTool(ann)
  const before = server.received.length
  const { content, metadata } = await stage.ask(bob)
  expect([content, metadata.sign_in_required]).toEqual(['Done.', '["issues"]'])
  expect(stage.toolResults()).toEqual([])
  expect((await sendAs(bob, `GET ${path}/sign-in`)).body).toEqual(signedOut)
  for (const line of [`GET ${path}/tools`, `POST ${path}/test-connection`])
    expect((await sendAs(bob, line)).body.error).toMatchObject({
      code: 'sign_in_required',
      message: expect.stringContaining('wb mcp servers login issues'),
    })
  expect(server.received.length).toBe(before)
})

test('an agent cannot use tools of a server that its author is not signed in to', async () => {
  const stage = await setUpMcpSignIn()
  const { status, body } = await stage.allowTool(stage.ann)
  expect([status, body.error]).toEqual([
    422,
    expect.objectContaining({
      code: 'agent_tool_unresolved',
      hint: 'Sign in to the MCP server first: wb mcp servers login issues',
    }),
  ])
})

test('a state is valid once, for the caller who started the sign-in, for ten minutes', async () => {
  const stage = await setUpMcpSignIn()
  const { sendAs, ann, bob, path } = stage
  const finish = (token: string, json: object) => sendAs(token, `POST ${path}/sign-in/finish`, json)
  const brought = await stage.authorize(ann, 'ann')
  const stolen = await finish(bob, brought)
  const unknown = await finish(bob, { ...brought, state: 'unknown' })
  expect([stolen.status, stolen.body.error]).toEqual([
    400,
    { ...(unknown.body.error as object), requestId: expect.any(String) },
  ])
  expect(stolen.body.error).toMatchObject({ code: 'invalid_state' })
  expect((await finish(ann, brought)).status).toBe(200)
  expect((await finish(ann, brought)).body.error).toMatchObject({ code: 'invalid_state' })
  const late = await stage.authorize(ann, 'ann')
  stage.clock.advance(600_000)
  expect((await finish(ann, late)).body.error).toMatchObject({ code: 'invalid_state' })
  expect(tokenRequests(stage, 'authorization_code')).toHaveLength(1)
})

test('a sign-in is discarded if the server changes before it is finished', async () => {
  const stage = await setUpMcpSignIn()
  const brought = await stage.authorize(stage.ann, 'ann')
  await stage.sendAs(stage.ann, `PATCH ${stage.path}`, { oauthScopes: ['tools'] })
  const finished = await stage.sendAs(stage.ann, `POST ${stage.path}/sign-in/finish`, brought)
  expect(finished.body.error).toMatchObject({ code: 'invalid_state' })
})

test.each([
  ['of another issuer', 'https://other.example.com'],
  ['without the issuer that the authorization server always names', undefined],
])('a response %s is rejected', async (_what, iss) => {
  const stage = await setUpMcpSignIn()
  const brought = await stage.authorize(stage.ann, 'ann')
  const line = `POST ${stage.path}/sign-in/finish`
  const { status, body } = await stage.sendAs(stage.ann, line, { ...brought, iss })
  expect([status, body.error]).toEqual([502, expect.objectContaining({ code: 'mcp_sign_in_failed' })])
  expect(tokenRequests(stage, 'authorization_code')).toEqual([])
})

test('concurrent turns use a refresh token once', async () => {
  const stage = await setUpMcpSignIn()
  await stage.signIn(stage.ann, 'ann')
  await stage.allowTool(stage.ann)
  stage.clock.advance(295_000)
  const answers = await Promise.all([stage.ask(stage.ann), stage.ask(stage.ann), stage.ask(stage.ann)])
  expect(answers.map(({ metadata }) => metadata.sign_in_required)).toEqual([undefined, undefined, undefined])
  expect(stage.toolResults()).toHaveLength(3)
  expect(tokenRequests(stage, 'refresh_token')).toHaveLength(1)
  stage.clock.advance(295_000)
  await stage.ask(stage.ann)
  const used = tokenRequests(stage, 'refresh_token').map(({ form }) => form.get('refresh_token'))
  expect([used.length, new Set(used).size]).toEqual([2, 2])
})

test('concurrent processes with one store use a refresh token once', async () => {
  const stage = await setUpMcpSignIn()
  const { provider, ann } = stage
  await stage.signIn(ann, 'ann')
  let reads = 0
  const other = await stage.openAnother({
    rows: store => ({
      ...store,
      get: (table, key) => {
        if (table.name === tables.mcpSignIns.name) reads++
        return store.get(table, key)
      },
    }),
  })
  stage.clock.advance(295_000)
  let release = () => {}
  const released = new Promise<undefined>(resolve => {
    release = () => resolve(undefined)
  })
  provider.intercept = ({ path }) => (path === '/token' ? released : undefined)
  const [line, headers] = [`GET ${stage.path}/tools`, { authorization: `Bearer ${ann}` }]
  const first = stage.send(line, undefined, headers)
  await waitUntil(() => tokenRequests(stage, 'refresh_token').length === 1)
  const second = other.send(line, undefined, headers)
  // The third read is that of a process that waits for the lease.
  await waitUntil(() => reads >= 3 || tokenRequests(stage, 'refresh_token').length > 1)
  release()
  const answers = await Promise.all([first, second])
  expect(answers.map(({ body }) => body.error)).toEqual([null, null])
  expect(tokenRequests(stage, 'refresh_token')).toHaveLength(1)
})

test('a sign-in that expires during a turn is named in the tool result', async () => {
  const stage = await setUpMcpSignIn()
  const { ann, server, provider } = stage
  await stage.signIn(ann, 'ann')
  await stage.allowTool(ann)
  for (const token of server.tokens) server.refused.add(token)
  const body = JSON.stringify({ error: 'invalid_grant' })
  provider.intercept = ({ path }) => (path === '/token' ? { status: 400, body } : undefined)
  await stage.ask(ann)
  expect(stage.toolResults()).toEqual([expect.stringContaining('Sign in with: wb mcp servers login issues')])
})

test('tools that a server offers to one caller are not offered to another, and agents get only tools with reviewed hashes', async () => {
  const stage = await setUpMcpSignIn()
  const { sendAs, ann, bob, path, server } = stage
  server.describesCallers = true
  await stage.signIn(ann, 'ann')
  await stage.signIn(bob, 'bob')
  await stage.allowTool(ann)
  const seenBy = async (token: string) =>
    (await sendAs(token, `GET ${path}/tools`)).body.items as { description: string; state: string }[]
  expect(await seenBy(ann)).toMatchObject([{ description: 'does whoami for ann', state: 'accepted' }])
  expect(await seenBy(bob)).toMatchObject([{ description: 'does whoami for bob', state: 'changed' }])
  await stage.ask(bob)
  expect(stage.toolResults()).toEqual([])
  await stage.ask(ann)
  expect(stage.toolResults()).toHaveLength(1)
})

test('a token that the server rejects is refreshed, and the call is repeated once', async () => {
  const stage = await setUpMcpSignIn()
  await stage.signIn(stage.ann, 'ann')
  await stage.allowTool(stage.ann)
  for (const token of stage.server.tokens) stage.server.refused.add(token)
  await stage.ask(stage.ann)
  expect(stage.toolResults()).toEqual([expect.stringContaining('whoami')])
  expect(tokenRequests(stage, 'refresh_token')).toHaveLength(1)
  for (const { form } of tokenRequests(stage, 'refresh_token'))
    expect(form.get('resource')).toBe(stage.server.url)
})

test('a rejected refresh signs out, and a failed one does not', async () => {
  const stage = await setUpMcpSignIn()
  const { sendAs, ann, path, provider, clock } = stage
  await stage.signIn(ann, 'ann')
  clock.advance(300_000)
  provider.intercept = ({ path: asked }) => (asked === '/token' ? { status: 503 } : undefined)
  expect((await sendAs(ann, `GET ${path}/tools`)).body).toMatchObject({ error: { code: 'http_error' } })
  expect((await sendAs(ann, `GET ${path}/sign-in`)).body).toMatchObject({ signedIn: true })
  const body = JSON.stringify({ error: 'invalid_grant', error_description: 'planted-secret' })
  provider.intercept = ({ path: asked }) => (asked === '/token' ? { status: 400, body } : undefined)
  const { body: tools, text } = await sendAs(ann, `GET ${path}/tools`)
  expect(tools).toMatchObject({ error: { code: 'sign_in_required' } })
  expect(text).not.toContain('planted-secret')
  expect((await sendAs(ann, `GET ${path}/sign-in`)).body).toEqual(signedOut)
})

test('signing out revokes the refresh token of one caller only', async () => {
  const stage = await setUpMcpSignIn()
  const { sendAs, ann, bob, path, provider } = stage
  await stage.signIn(ann, 'ann')
  await stage.signIn(bob, 'bob')
  await stage.allowTool(ann)
  await stage.ask(ann)
  expect((await sendAs(ann, `DELETE ${path}/sign-in`)).status).toBe(204)
  expect(provider.requests.filter(({ path: asked }) => asked === '/token/revocation')).toHaveLength(1)
  expect((await sendAs(ann, `GET ${path}/sign-in`)).body).toEqual(signedOut)
  expect((await stage.ask(ann)).metadata.sign_in_required).toBe('["issues"]')
  expect((await sendAs(bob, `GET ${path}/sign-in`)).body).toMatchObject({ signedIn: true })
})

test.each([
  ['url', { url: 'https://other.example.com/mcp' }],
  ['client', { oauthClientId: 'other' }],
])('a change of the %s ends all sign-ins, and a new label does not', async (_what, patch) => {
  const { sendAs, ann, path, signIn } = await setUpMcpSignIn()
  await signIn(ann, 'ann')
  await sendAs(ann, `PATCH ${path}`, { label: 'tickets' })
  expect((await sendAs(ann, `GET ${path}/sign-in`)).body).toMatchObject({ signedIn: true })
  await sendAs(ann, `PATCH ${path}`, patch)
  expect((await sendAs(ann, `GET ${path}/sign-in`)).body).toMatchObject(unsigned)
})

test('tokens are stored encrypted, and are deleted with their server', async () => {
  const stage = await setUpMcpSignIn()
  const { sendAs, ann, path, server, dataDir } = stage
  await stage.signIn(ann, 'ann')
  await sendAs(ann, `GET ${path}/tools`)
  const store = await openEmbeddedStore({ path: `${dataDir}/workbase.db` })
  const rows = () =>
    store.rows.list(tables.mcpSignIns, { index: 'byWorkspace', prefix: [stage.workspaceId], limit: 9 })
  const [stored] = await rows()
  expect(server.tokens.size).toBe(1)
  const [, payload] = [...server.tokens][0]!.split('.')
  expect(JSON.stringify(stored!.row)).not.toContain(payload)
  await sendAs(ann, `DELETE ${path}`)
  expect(await rows()).toEqual([])
  await store.close()
})

test('tokens of one caller cannot be decrypted for another', async () => {
  const stage = await setUpMcpSignIn()
  const { sendAs, ann, bob, path, dataDir } = stage
  await stage.signIn(ann, 'ann')
  await stage.signIn(bob, 'bob')
  const store = await openEmbeddedStore({ path: `${dataDir}/workbase.db` })
  const prefix = [stage.workspaceId]
  const [one, other] = await store.rows.list(tables.mcpSignIns, { index: 'byWorkspace', prefix, limit: 9 })
  await store.rows.atomic([
    { op: 'replace', table: tables.mcpSignIns, row: { ...other!.row, sealed: one!.row.sealed } },
  ])
  await store.close()
  const states = [ann, bob].map(async token => (await sendAs(token, `GET ${path}/sign-in`)).body.signedIn)
  expect((await Promise.all(states)).sort()).toEqual([false, true])
})

test('an anonymous caller cannot sign in if authentication is enabled', async () => {
  const stage = await setUpMcpSignIn({}, { auth: { anonymousPolicy: 'allow' } })
  const { status, body } = await stage.send(`POST ${stage.path}/sign-in`, { redirectUri })
  expect([status, body.error]).toEqual([401, expect.objectContaining({ code: 'unauthorized' })])
})

test.each([
  ['http://192.0.2.1/callback'],
  ['https://app.example.com/callback'],
  ['javascript:alert(1)'],
  ['http://user@127.0.0.1/callback'],
  ['http://127.0.0.1.example.com/callback'],
  ['callback'],
])('the redirect URI %s is rejected', async value => {
  const stage = await setUpMcpSignIn()
  const { status, body } = await stage.sendAs(stage.ann, `POST ${stage.path}/sign-in`, { redirectUri: value })
  expect([status, body.error]).toEqual([
    400,
    expect.objectContaining({ code: 'validation_error', message: expect.stringContaining('redirectUri') }),
  ])
  expect(stage.server.received).toEqual([])
})

test('a sign-in to a server with a shared credential is a conflict', async () => {
  const stage = await setUpMcpSignIn({ authType: 'credential' })
  const { status, body } = await stage.sendAs(stage.ann, `POST ${stage.path}/sign-in`, { redirectUri })
  expect([status, body.error]).toEqual([409, expect.objectContaining({ code: 'conflict' })])
})

test.each([
  ['credentialRef', { authType: 'oauth2', credentialRef: 'env:KEY' }],
  ['oauthClientSecretRef', { oauthClientSecretRef: 'env:KEY' }],
  ['oauthScopes', { oauthScopes: ['two words'] }],
  ['authType', { authType: 'none' }],
])('an invalid %s is rejected, and nothing changes', async (field, patch) => {
  const stage = await setUpMcpSignIn()
  const before = (await stage.sendAs(stage.ann, `GET ${stage.path}`)).text
  const { status, body } = await stage.sendAs(stage.ann, `PATCH ${stage.path}`, patch)
  expect([status, body.error]).toEqual([
    400,
    expect.objectContaining({ code: 'validation_error', message: expect.stringContaining(field) }),
  ])
  expect((await stage.sendAs(stage.ann, `GET ${stage.path}`)).text).toBe(before)
})
