import {
  Client,
  type OAuthClientProvider,
  StreamableHTTPClientTransport,
  UnauthorizedError,
} from '@modelcontextprotocol/client'
import { expect, onTestFinished, test } from 'vitest'
import { workspaces } from '../../src/contract/workspaces.ts'
import { serveOverHttp } from '../harness/http-runtime.ts'
import {
  audience,
  browse,
  clients,
  type ProviderOptions,
  startProvider,
} from '../harness/identity-provider.ts'
import { makeBase } from '../harness/resources.ts'
import { open } from '../harness/runtime.ts'
import { acceptHeaders, call } from './mcp-setup.ts'

const workspaceId = '11111111-1111-4111-8111-111111111111'
const publicOrigin = 'https://wb.example.test'
const path = `/api/v1/workspaces/${workspaceId}/mcp`
const resource = publicOrigin + path
const metadataUrl = `${publicOrigin}/.well-known/oauth-protected-resource${path}`
const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' }
const callback = 'http://localhost:9/callback'

interface Setting {
  readonly provider?: ProviderOptions
  /** Settings of `auth.oidc`. */
  readonly oidc?: object
  readonly config?: object
}

/** A runtime behind `publicOrigin` whose MCP endpoint accepts tokens of a real identity provider. */
async function stage({ provider, oidc, config }: Setting = {}) {
  const idp = await startProvider({ registration: true, ...provider })
  const auth = {
    mode: 'any',
    anonymousPolicy: 'reject',
    oidc: { issuer: idp.issuer, audience: [audience, resource], ...oidc },
  }
  const wb = await serveOverHttp(
    await open({ server: true, config: { auth, runtime: { publicOrigin }, ...config } }),
  )
  const asOperator = { call: wb.callAsOperator }
  await wb.callAsOperator(workspaces.create, { body: { workspaceId, name: 'shared' } })
  const base = await makeBase(asOperator, { workspaceId })
  /** Redirects requests for the public origin to the runtime. */
  const fetchFn = (url: string | URL, init?: RequestInit) =>
    fetch(String(url).replace(publicOrigin, wb.url), init)
  return { ...wb, idp, base, fetchFn }
}

/** State that an MCP client stores for a sign-in, and the browser of its user. */
class SignIn implements OAuthClientProvider {
  readonly redirectUrl = callback
  readonly #kept = new Map<string, unknown>()
  /** Requested scopes, one entry for each sign-in. */
  readonly requested: (string | null)[] = []
  arrived = ''

  get clientMetadata() {
    return {
      redirect_uris: [callback],
      application_type: 'native',
      token_endpoint_auth_method: 'none',
      grant_types: ['authorization_code', 'refresh_token'],
    }
  }
  clientInformation() {
    return this.#kept.get('client') as never
  }
  saveClientInformation(client: unknown) {
    this.#kept.set('client', client)
  }
  tokens() {
    return this.#kept.get('tokens') as never
  }
  saveTokens(tokens: unknown) {
    this.#kept.set('tokens', tokens)
  }
  codeVerifier() {
    return this.#kept.get('verifier') as string
  }
  saveCodeVerifier(verifier: string) {
    this.#kept.set('verifier', verifier)
  }
  discoveryState() {
    return this.#kept.get('discovery') as never
  }
  saveDiscoveryState(state: unknown) {
    this.#kept.set('discovery', state)
  }
  async redirectToAuthorization(url: URL) {
    this.requested.push(url.searchParams.get('scope'))
    expect(url.searchParams.get('resource')).toBe(resource)
    expect(url.searchParams.get('code_challenge_method')).toBe('S256')
    this.arrived = (await browse(url, { stopAt: callback })).url
  }
}

/** The official client, whose user signs in on request. Without an ID, it registers itself. */
async function signedIn({ fetchFn, idp }: Awaited<ReturnType<typeof stage>>, clientId?: string) {
  const authProvider = new SignIn()
  if (clientId) authProvider.saveClientInformation({ client_id: clientId, issuer: idp.issuer })
  const transportOf = () =>
    new StreamableHTTPClientTransport(new URL(resource), { authProvider, fetch: fetchFn })
  const first = transportOf()
  await expect(new Client({ name: 'test', version: '1' }).connect(first)).rejects.toThrow(UnauthorizedError)
  await first.finishAuth(new URL(authProvider.arrived).searchParams)
  const client = new Client({ name: 'test', version: '1' })
  const transport = transportOf()
  await client.connect(transport)
  onTestFinished(() => client.close())
  return { client, transport, authProvider }
}

const challengeOf = ({ headers }: { headers: Headers }) => headers.get('www-authenticate')

test('the official client finds the provider, signs in and calls a tool', async () => {
  const wb = await stage({ provider: { resources: { [resource]: '' } } })
  const { client, authProvider } = await signedIn(wb)
  expect(await call(client, 'list_knowledge_bases')).toMatchObject({
    isError: false,
    value: [{ name: wb.base.name }],
  })
  expect(authProvider.requested).toHaveLength(1)
})

test('describes each MCP endpoint and the runtime as protected resources, below the public origin only', async () => {
  const wb = await stage()
  const described = {
    resource_name: 'Workbase',
    authorization_servers: [wb.idp.issuer],
    bearer_methods_supported: ['header'],
    scopes_supported: ['openid'],
  }
  const forged = { host: 'localhost', 'x-forwarded-host': 'evil.test', forwarded: 'host=evil.test' }
  const read = async (at: string) => {
    const answer = await wb.send(`GET /.well-known/oauth-protected-resource${at}`, undefined, forged)
    expect(answer.status).toBe(200)
    return answer.body
  }
  expect(await read(path)).toEqual({ ...described, resource })
  expect(await read('')).toEqual({ ...described, resource: publicOrigin })
  const unknown = path.replaceAll('1111', '9999')
  expect(await read(unknown)).toMatchObject({ resource: publicOrigin + unknown })
})

test('a 401 of the endpoint refers to its metadata and reports an invalid token', async () => {
  const wb = await stage()
  const post = (headers = {}) => wb.send(`POST ${path}`, list, { ...acceptHeaders, ...headers })
  const pointer = `resource_metadata="${metadataUrl}"`
  expect([challengeOf(await post()), (await post()).status]).toEqual([`Bearer ${pointer}`, 401])
  const wrong = await wb.idp.sign({ aud: 'https://elsewhere.example' })
  for (const authorization of [`Bearer ${wrong}`, 'Bearer wb_live_unknown', 'Basic d2I6d2I='])
    expect(challengeOf(await post({ authorization }))).toBe(`Bearer error="invalid_token", ${pointer}`)
  expect(challengeOf(await wb.send(`GET ${path}`))).toBe(`Bearer ${pointer}`)
  expect(challengeOf(await wb.send('GET /api/v1/workspaces'))).toBe('Bearer')
  const odd = await wb.send(`POST /api/v1/workspaces/a%22,b/mcp`, list, acceptHeaders)
  expect([odd.status, challengeOf(odd)]).toEqual([401, 'Bearer'])
})

test.each([
  ['keys alone', { auth: { mode: 'apiKey', anonymousPolicy: 'reject' } }],
  ['no public origin', { runtime: {} }],
  ['no MCP', { mcp: { enabled: false } }],
])('the endpoint is not a protected resource with %s', async (_why, config) => {
  const wb = await stage({ config })
  for (const at of ['', path]) {
    const answer = await wb.send(`GET /.well-known/oauth-protected-resource${at}`)
    expect(answer).toMatchObject({ status: 404, body: { error: { code: 'not_configured' } } })
  }
  expect(challengeOf(await wb.send(`POST ${path}`, list, acceptHeaders))).toBe('Bearer')
})

test('the scopes of a token limit its tools, and the client can request more', async () => {
  const scopes = ['read', 'write:ingest']
  const resources = { [resource]: 'read' }
  const wb = await stage({ provider: { resources, redirectUris: [callback] }, oidc: { scopes } })
  const metadata = await wb.send(`GET /.well-known/oauth-protected-resource${path}`)
  expect(metadata.body.scopes_supported).toEqual(['openid', ...scopes])
  const { client, transport, authProvider } = await signedIn(wb, clients.public.id)
  expect(authProvider.requested).toEqual(['openid read write:ingest offline_access'])
  const text = { knowledgeBaseId: wb.base.params.knowledgeBaseId, text: 'The ornithopter flaps its wings.' }
  expect(await call(client, 'list_knowledge_bases')).toMatchObject({ isError: false })
  // Signing in cannot resolve a missing scope that the provider does not know.
  expect(await call(client, 'create_knowledge_base', { name: 'more' })).toMatchObject({
    isError: true,
    value: { outcome: 'denied', required: 'write:kb', subjectScopes: ['read'] },
  })
  resources[resource] = 'read write:ingest'
  await expect(call(client, 'ingest_text', text)).rejects.toThrow(UnauthorizedError)
  expect(authProvider.requested.at(-1)!.split(' ')).toContain('write:ingest')
  await transport.finishAuth(new URL(authProvider.arrived).searchParams)
  expect(await call(client, 'ingest_text', text)).toMatchObject({ isError: false })
})
