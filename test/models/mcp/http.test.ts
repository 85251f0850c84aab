import { expect, onTestFinished, test } from 'vitest'
import { createEnvironment } from '../../../src/config/config-environment.ts'
import { EndpointGuard } from '../../../src/models/endpoint-guard.ts'
import { McpFailure } from '../../../src/models/mcp/client.ts'
import { listMcpTools, type McpEndpoint } from '../../../src/models/mcp/http.ts'
import { openOutboundNetwork } from '../../../src/models/outbound.ts'
import { type McpServerOptions, startMcpServer } from '../../fakes/mcp-server.ts'

const lenient = new EndpointGuard({ blocksPrivate: false, exceptions: [] })
const secret = 'tool-server-secret'

interface Asking {
  readonly credentialRef?: string
  readonly released?: readonly string[]
  readonly guard?: EndpointGuard
  readonly timeoutMs?: number
}

async function ask(url: string, asking: Asking = {}) {
  const network = openOutboundNetwork({ guard: asking.guard ?? lenient })
  onTestFinished(() => network.close())
  const server: McpEndpoint = { workspaceId: 'w', url, credentialRef: asking.credentialRef ?? null }
  const parts = {
    environment: createEnvironment({ TOOLS_KEY: secret }),
    isReleased: async (_ref: string, host: string) => asking.released?.includes(host) ?? false,
    fetch: network.fetch,
  }
  return listMcpTools(server, parts, AbortSignal.timeout(asking.timeoutMs ?? 10_000))
}

async function failure(asked: Promise<unknown>): Promise<McpFailure> {
  const error = await asked.catch((thrown: unknown) => thrown)
  expect(error).toBeInstanceOf(McpFailure)
  return error as McpFailure
}

async function failureOf(intercept: McpServerOptions['intercept'], asking?: Asking): Promise<McpFailure> {
  const { url } = await startMcpServer({ intercept })
  return failure(ask(url, asking))
}

test.each([false, true])('lists tools with their schemas; in sessions of 2025: %s', async usesSessions => {
  const server = await startMcpServer({ tools: ['search', 'add'], usesSessions })
  const tools = await ask(server.url)
  expect(tools.map(({ name, description }) => `${name}: ${description}`)).toEqual([
    'search: does search',
    'add: does add',
  ])
  expect(tools[0]!.inputSchema).toMatchObject({ type: 'object' })
  expect([...server.sessions]).toEqual([])
  expect(server.received.filter(({ method }) => method === 'GET')).toEqual([])
})

test('sends a credential with every request to a host that it is released for', async () => {
  const server = await startMcpServer()
  await ask(server.url, { credentialRef: 'env:TOOLS_KEY', released: [server.host] })
  expect(server.received.length).toBeGreaterThan(0)
  for (const { authorization } of server.received) expect(authorization).toBe(`Bearer ${secret}`)
})

test('does not resolve an unreleased credential, and does not connect', async () => {
  const server = await startMcpServer()
  const asked = ask(server.url, { credentialRef: 'env:TOOLS_KEY', released: ['other.example'] })
  const { code, message } = await failure(asked)
  expect([code, server.received]).toEqual(['credential_unavailable', []])
  expect(message).toContain(`uses env:TOOLS_KEY, which is not released for ${server.host}`)
  const missing = await failure(ask(server.url, { credentialRef: 'env:NO_SUCH', released: [server.host] }))
  expect([missing.code, missing.message]).toEqual([
    'credential_unavailable',
    expect.stringContaining('env:NO_SUCH is not set'),
  ])
})

test('the guard rejects a private address with a hint that names the setting', async () => {
  const server = await startMcpServer()
  const guard = new EndpointGuard({ blocksPrivate: true, exceptions: [] })
  const { code, message } = await failure(ask(server.url, { guard }))
  expect([code, server.received]).toEqual(['endpoint_refused', []])
  expect(message).toContain(`"${server.host}" to runtime.allowedEndpoints`)
})

test.each([401, 403])('reports status %i as a rejected key', async status => {
  const { code, message } = await failureOf(() => new Response('who are you? 8f2c', { status }))
  expect(code).toBe('unauthorized')
  expect(message).not.toContain('8f2c')
})

test('does not follow redirects, even within an origin', async () => {
  const asked: string[] = []
  const { code } = await failureOf(request => {
    asked.push(new URL(request.url).pathname)
    return new Response(null, { status: 307, headers: { location: '/elsewhere' } })
  })
  expect(code).toBe('redirected')
  expect(new Set(asked)).toEqual(new Set(['/mcp']))
})

test('distinguishes a rejected handshake from another protocol', async () => {
  expect((await failureOf(() => new Response('down', { status: 503 }))).code).toBe('http_error')
  expect((await failureOf(() => Response.json({ hello: 'world' }))).code).toBe('protocol_error')
  expect((await failureOf(() => new Response('<html>'))).code).toBe('protocol_error')
})

test('stops waiting for a silent server', async () => {
  const { code } = await failureOf(() => new Promise<Response>(() => {}), { timeoutMs: 300 })
  expect(code).toBe('timeout')
})

test('truncates a response that does not end', async () => {
  const { code } = await failureOf(() => {
    const part = new TextEncoder().encode(' '.repeat(1 << 20))
    const body = new ReadableStream({ pull: controller => controller.enqueue(part) })
    return new Response(body, { headers: { 'content-type': 'application/json' } })
  })
  expect(code).toBe('too_large')
})

test('stops after twenty pages', async () => {
  let pages = 0
  const { url } = await startMcpServer({
    usesSessions: true,
    intercept: async request => {
      const call = request.method === 'POST' ? await request.clone().json() : {}
      const { id, method } = call as { id?: number; method?: string }
      if (method !== 'tools/list') return undefined
      const tools = [{ name: `tool${++pages}`, inputSchema: { type: 'object' } }]
      return Response.json({ jsonrpc: '2.0', id, result: { tools, nextCursor: `${pages}` } })
    },
  })
  expect((await failure(ask(url))).code).toBe('protocol_error')
  expect(pages).toBe(20)
})

test('reports a host that is not reachable', async () => {
  expect((await failure(ask('http://127.0.0.1:9/mcp'))).code).toBe('unreachable')
})
