import { createRemoteJWKSet, jwtVerify } from 'jose'
import { onTestFinished } from 'vitest'
import type { Message } from '../../src/contract/conversations.ts'
import { startChatServer } from '../fakes/chat-server.ts'
import { type McpServerFake, startMcpServer } from '../fakes/mcp-server.ts'
import { browse, type RunningProvider, startProvider } from '../harness/identity-provider.ts'
import {
  open,
  TestClock,
  type TestResponse,
  type TestRuntime,
  type TestRuntimeOptions,
} from '../harness/runtime.ts'

export const redirectUri = 'http://127.0.0.1:49152/callback'
const bootstrap = 'the-token-of-the-operator-of-these-tests'

/** An MCP server whose tools require an access token of an identity provider. */
export interface ProtectedServer {
  readonly url: string
  readonly received: McpServerFake['received']
  /** Subject of each accepted token. */
  readonly callers: string[]
  /** Accepted tokens, without duplicates. */
  readonly tokens: Set<string>
  /** Tokens that are rejected from now on. */
  readonly refused: Set<string>
  /** Metadata that replaces the real metadata. */
  metadata: object | string | undefined
  /** Returns a different tool description for each caller. */
  describesCallers: boolean
  /** Error text for all requests with a valid token. */
  refusal: string | undefined
}

export async function startProtectedServer({
  issuer,
  keySetUrl,
}: Pick<RunningProvider, 'issuer' | 'keySetUrl'>): Promise<ProtectedServer> {
  const keys = createRemoteJWKSet(keySetUrl)
  const path = '/.well-known/oauth-protected-resource/mcp'
  const fake = await startMcpServer({
    tools: [
      {
        name: 'whoami',
        description: () =>
          server.describesCallers ? `does whoami for ${server.callers.at(-1)}` : 'does whoami',
      },
    ],
    async intercept(request) {
      const { pathname, origin } = new URL(request.url)
      if (pathname === path) {
        const defaultMetadata = {
          resource: fake.url,
          authorization_servers: [issuer],
          scopes_supported: ['tools'],
        }
        const { metadata = defaultMetadata } = server
        const body = typeof metadata === 'string' ? metadata : JSON.stringify(metadata)
        return new Response(body, { headers: { 'content-type': 'application/json' } })
      }
      const token = request.headers.get('authorization')?.replace(/^Bearer /, '') ?? ''
      const checked = jwtVerify(token, keys, { issuer, audience: fake.url })
      const verified = server.refused.has(token) ? undefined : await checked.catch(() => undefined)
      if (!verified) {
        const challenge = `Bearer resource_metadata="${origin}${path}"`
        return new Response(null, { status: 401, headers: { 'www-authenticate': challenge } })
      }
      server.tokens.add(token)
      server.callers.push(String(verified.payload.sub))
      return server.refusal === undefined ? undefined : new Response(server.refusal, { status: 400 })
    },
  })
  const server: ProtectedServer = {
    url: fake.url,
    received: fake.received,
    callers: [],
    tokens: new Set(),
    refused: new Set(),
    metadata: undefined,
    describesCallers: false,
    refusal: undefined,
  }
  return server
}

interface McpSignInSetup extends TestRuntime {
  readonly clock: TestClock
  readonly provider: RunningProvider
  readonly server: ProtectedServer
  readonly workspaceId: string
  /** Path of the MCP server. */
  readonly path: string
  /** Tokens of two API keys. */
  readonly ann: string
  readonly bob: string
  /** Opens another runtime on the same store. */
  openAnother(more: TestRuntimeOptions): Promise<TestRuntime>
  sendAs(token: string, line: string, json?: unknown): Promise<TestResponse>
  /** Starts a sign-in and returns the parameters of the redirect. */
  authorize(token: string, login: string): Promise<{ state: string; code: string; iss?: string }>
  signIn(token: string, login: string): Promise<TestResponse>
  /** Lets the agent use the tool. @param token  of a caller who is signed in */
  allowTool(token: string): Promise<TestResponse>
  /** Sends a question to the agent, whose model calls the tool if it is available. */
  ask(token: string): Promise<Message>
  /** Requests that the model received. */
  modelRequests(): readonly object[]
  /** Tool results that the model received. */
  toolResults(): string[]
}

/** A runtime with two callers, an MCP server that they sign in to, and an agent that uses its tool. */
export async function setUpMcpSignIn(
  fields: object = {},
  config: { auth?: object } = {},
  environment: Readonly<Record<string, string>> = {},
  resolve?: TestRuntimeOptions['resolve'],
): Promise<McpSignInSetup> {
  const clock = new TestClock()
  const resources: Record<string, string> = {}
  const provider = await startProvider({
    registration: true,
    revocation: true,
    resources,
    redirectUris: [redirectUri],
  })
  const server = await startProtectedServer(provider)
  resources[server.url] = 'tools'
  const model = await startChatServer()
  onTestFinished(() => model.close())
  const options: TestRuntimeOptions = {
    clock,
    ...(resolve && { resolve }),
    environment: { FIRST_TOKEN: bootstrap, ...environment },
    config: {
      runtime: { allowedEndpoints: ['127.0.0.1'] },
      ...config,
      auth: {
        mode: 'apiKey',
        anonymousPolicy: 'reject',
        bootstrapTokenRef: 'env:FIRST_TOKEN',
        ...config.auth,
      },
    },
  }
  const wb = await open(options)
  const sendAs = (token: string, line: string, json?: unknown) =>
    wb.send(line, json, { authorization: `Bearer ${token}` })
  const create = async (line: string, json: object) => {
    const { status, body, text } = await sendAs(bootstrap, line, json)
    if (status !== 201) throw new Error(text)
    return body
  }
  const all = '/api/v1/workspaces'
  const workspaceId = String((await create(`POST ${all}`, { name: 'team' })).workspaceId)
  const W = `${all}/${workspaceId}`
  const key = async (label: string) =>
    String((await create(`POST ${W}/api-keys`, { label, role: 'editor' })).plaintext)
  const [ann, bob] = [await key('ann'), await key('bob')]
  const { mcpServerId } = await create(`POST ${W}/mcp-servers`, {
    label: 'issues',
    url: server.url,
    authType: 'oauth2',
    ...fields,
  })
  const path = `${W}/mcp-servers/${mcpServerId}`
  const service = { name: 'fake', provider: 'ollama', modelName: 'a:3b', endpointBaseUrl: model.url }
  const { llmServiceId } = await create(`POST ${W}/llm-services`, service)
  const { agentId } = await create(`POST ${W}/agents`, { name: 'agent', llmServiceId })
  model.respond(({ body }) => {
    const { messages, tools = [] } = body as unknown as {
      messages: { role: string }[]
      tools?: { function: { name: string } }[]
    }
    const tool = tools.find(({ function: { name } }) => name.endsWith('whoami'))
    const isDone = messages.at(-1)!.role === 'tool'
    return tool && !isDone ? { toolCalls: [{ name: tool.function.name }] } : { text: 'Done.' }
  })
  const authorize = async (token: string, login: string) => {
    const begun = await sendAs(token, `POST ${path}/sign-in`, { redirectUri })
    if (begun.status !== 200) throw new Error(begun.text)
    const { url } = await browse(String(begun.body.authorizationUrl), { login, stopAt: redirectUri })
    const { state, code, iss } = Object.fromEntries(new URL(url).searchParams)
    return { state: state!, code: code!, ...(iss !== undefined && { iss }) }
  }
  return {
    ...wb,
    clock,
    provider,
    server,
    workspaceId,
    path,
    ann,
    bob,
    openAnother: more => open({ ...options, ...more, dataDir: wb.dataDir }),
    sendAs,
    authorize,
    signIn: async (token, login) =>
      sendAs(token, `POST ${path}/sign-in/finish`, await authorize(token, login)),
    allowTool: token =>
      sendAs(token, `PATCH ${W}/agents/${agentId}`, { toolIds: [`mcp:${mcpServerId}:whoami`] }),
    async ask(token) {
      const conversations = `${W}/agents/${agentId}/conversations`
      const { conversationId } = (await sendAs(token, `POST ${conversations}`, {})).body
      const line = `POST ${conversations}/${conversationId}/messages`
      const { status, body, text } = await sendAs(token, line, { content: 'Who am I?' })
      if (status !== 201) throw new Error(text)
      return body.assistant as Message
    },
    modelRequests: () => model.received,
    toolResults: () =>
      model.received.flatMap(({ body }) => {
        const last = (body.messages as { role: string; content: string }[]).at(-1)!
        return last.role === 'tool' ? [last.content] : []
      }),
  }
}
