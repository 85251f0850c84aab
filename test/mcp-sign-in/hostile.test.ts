import { expect, test } from 'vitest'
import { createLog } from '../../src/base/log.ts'
import { redirectUri, setUpMcpSignIn } from './sign-in-setup.ts'

type Stage = Awaited<ReturnType<typeof setUpMcpSignIn>>

const discovery = '/.well-known/oauth-authorization-server'

/** Valid metadata of an authorization server, with some fields replaced. */
function metadataOf({ provider: { issuer } }: Stage, fields: object) {
  return {
    issuer,
    authorization_endpoint: `${issuer}/auth`,
    token_endpoint: `${issuer}/token`,
    registration_endpoint: `${issuer}/reg`,
    response_types_supported: ['code'],
    code_challenge_methods_supported: ['S256'],
    ...fields,
  }
}

/** Sets the metadata of the authorization server. */
function describe(stage: Stage, fields: object): void {
  const body = JSON.stringify(metadataOf(stage, fields))
  stage.provider.intercept = ({ path }) => (path === discovery ? { status: 200, body } : undefined)
}

/** The lines that a runtime has logged. */
function linesOf({ loggedProblems }: Stage): string {
  const lines: string[] = []
  const log = createLog({ level: 'debug', stream: { write: line => lines.push(line) } })
  for (const { facts, message } of loggedProblems) log.warn(facts, message)
  return lines.join('')
}

async function refusedBy({ sendAs, ann, path }: Stage) {
  const { status, body, text } = await sendAs(ann, `POST ${path}/sign-in`, { redirectUri })
  expect([status, body.error], text).toEqual([502, expect.objectContaining({ code: 'mcp_sign_in_failed' })])
  return text
}

test('the unmodified metadata is accepted', async () => {
  const stage = await setUpMcpSignIn()
  describe(stage, {})
  expect((await stage.sendAs(stage.ann, `POST ${stage.path}/sign-in`, { redirectUri })).status).toBe(200)
})

test.each([
  ['a script to open', { authorization_endpoint: 'javascript:alert(1)' }],
  ['a file to open', { authorization_endpoint: 'file:///etc/passwd' }],
  ['a private address to open', { authorization_endpoint: 'https://192.168.1.1/admin' }],
  ['an unencrypted page to open', { authorization_endpoint: 'http://login.example.com/auth' }],
  ['a private token endpoint', { token_endpoint: 'https://10.0.0.1/token' }],
  ['a token endpoint of a metadata service', { token_endpoint: 'https://169.254.169.254/token' }],
  ['an unencrypted token endpoint', { token_endpoint: 'http://login.example.com/token' }],
  ['a private revocation endpoint', { revocation_endpoint: 'https://10.0.0.1/revoke' }],
  ['no PKCE', { code_challenge_methods_supported: ['plain'] }],
  ['nothing about PKCE', { code_challenge_methods_supported: undefined }],
  ['another issuer', { issuer: 'https://other.example.com' }],
  ['no registration', { registration_endpoint: undefined }],
  ['no authorization code', { response_types_supported: ['token'] }],
])('an authorization server with %s is rejected without a client registration', async (_what, fields) => {
  const stage = await setUpMcpSignIn()
  describe(stage, fields)
  await refusedBy(stage)
  expect(stage.provider.count('/reg')).toBe(0)
})

test('a name that resolves to a private address is rejected on connect', async () => {
  const stage = await setUpMcpSignIn({}, {}, {}, async host =>
    host === 'inside.example.com' ? ['10.0.0.1'] : [],
  )
  describe(stage, { registration_endpoint: 'https://inside.example.com/reg' })
  expect(await refusedBy(stage)).toContain('may not call the address')
})

test('metadata of unlimited length is rejected', async () => {
  const stage = await setUpMcpSignIn()
  describe(stage, { padding: 'x'.repeat(300_000) })
  expect(await refusedBy(stage)).toContain('more than 262144 bytes')
})

test('a redirect of the authorization server is not followed', async () => {
  const stage = await setUpMcpSignIn()
  const location = `${stage.provider.issuer}/elsewhere`
  stage.provider.intercept = ({ path }) =>
    path === discovery ? { status: 302, headers: { location } } : undefined
  expect(await refusedBy(stage)).toContain('redirect')
  expect(stage.provider.count('/elsewhere')).toBe(0)
})

test.each([
  ['of another server', (url: string) => ({ resource: url.replace('/mcp', ':1/mcp') })],
  ['without an authorization server', (url: string) => ({ resource: url })],
  [
    'that names a private authorization server',
    (url: string) => ({ resource: url, authorization_servers: ['https://10.0.0.1'] }),
  ],
  ['that is no JSON', () => '<html>'],
])('metadata %s is rejected', async (_what, metadata) => {
  const stage = await setUpMcpSignIn()
  stage.server.metadata = metadata(stage.server.url)
  await refusedBy(stage)
})

test.each([
  ['another type', { token_type: 'mac' }],
  ['a line break', { access_token: 'one\r\nx-planted: yes' }],
  ['too many characters', { access_token: 'x'.repeat(20_000) }],
])('a token with %s is rejected, without repeating the text of the server', async (_what, fields) => {
  const stage = await setUpMcpSignIn()
  const { ann, path, provider } = stage
  const brought = await stage.authorize(ann, 'ann')
  const body = JSON.stringify({ access_token: 'planted', token_type: 'Bearer', expires_in: 60, ...fields })
  provider.intercept = ({ path: asked }) => (asked === '/token' ? { status: 200, body } : undefined)
  const { status, text } = await stage.sendAs(ann, `POST ${path}/sign-in/finish`, brought)
  expect(status).toBe(502)
  expect(text).not.toContain('planted')
  expect((await stage.sendAs(ann, `GET ${path}/sign-in`)).body).toMatchObject({ signedIn: false })
})

test('an error of the authorization server is reported only by its standard code', async () => {
  const stage = await setUpMcpSignIn()
  for (const error of ['invalid_client', 'planted\u001b[31m']) {
    const brought = await stage.authorize(stage.ann, 'ann')
    const body = JSON.stringify({ error, error_description: 'planted' })
    stage.provider.intercept = ({ path }) => (path === '/token' ? { status: 400, body } : undefined)
    const { text } = await stage.sendAs(stage.ann, `POST ${stage.path}/sign-in/finish`, brought)
    expect(text).toContain('mcp_sign_in_failed')
    expect(text).not.toContain('planted')
    stage.provider.intercept = () => undefined
  }
})

test('neither tokens nor the code are in the log, in the audit trail, or in messages to the model', async () => {
  const stage = await setUpMcpSignIn()
  const { ann, server, sendAsOperator } = stage
  const brought = await stage.authorize(ann, 'ann')
  await stage.sendAs(ann, `POST ${stage.path}/sign-in/finish`, brought)
  await stage.allowTool(ann)
  await stage.ask(ann)
  const { text } = await sendAsOperator('GET /api/v1/audit?limit=200')
  expect(text).toContain('mcp.sign_in')
  const seen = [text, linesOf(stage), JSON.stringify(stage.modelRequests())].join('\n')
  expect(server.tokens.size).toBeGreaterThan(0)
  for (const secret of [...server.tokens, brought.code]) expect(seen).not.toContain(secret)
})

test.each([
  ['an error', 400, JSON.stringify({ error: 'server_error', error_description: 'got planted' })],
  ['a failure', 500, 'got planted'],
  ['no JSON', 200, 'planted'],
])('%s of an authorization server that repeats its input is not logged', async (_what, status, body) => {
  const stage = await setUpMcpSignIn()
  const { ann, clock, provider } = stage
  await stage.signIn(ann, 'ann')
  await stage.allowTool(ann)
  clock.advance(300_000)
  provider.intercept = ({ path }) => (path === '/token' ? { status, body } : undefined)
  await stage.ask(ann)
  expect(linesOf(stage)).toContain('did not list its tools')
  expect(linesOf(stage)).not.toContain('planted')
})

test('the error message of a server that received a token is not logged', async () => {
  const stage = await setUpMcpSignIn()
  const { ann, clock, server } = stage
  await stage.signIn(ann, 'ann')
  await stage.allowTool(ann)
  server.refusal = 'got planted'
  clock.advance(120_000)
  await stage.ask(ann)
  expect(linesOf(stage)).toContain('did not list its tools')
  expect(linesOf(stage)).not.toContain('planted')
})
