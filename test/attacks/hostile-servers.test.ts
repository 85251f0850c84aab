import { expect, test } from 'vitest'
import { agents } from '../../src/contract/agents.ts'
import { mcpServers } from '../../src/contract/mcp-servers.ts'
import { llmServices } from '../../src/contract/services.ts'
import { parseEndpoint } from '../../src/models/endpoint.ts'
import type { McpTool } from '../../src/models/mcp/client.ts'
import { refusals, startChatServer } from '../fakes/chat-server.ts'
import { startMcpServer } from '../fakes/mcp-server.ts'
import { makeWorkspace } from '../harness/resources.ts'
import { open } from '../harness/runtime.ts'

/** A quadratic search for the last of these slashes would take hours. */
const slashes = '/'.repeat(2_000_000)

test('an address with millions of slashes is parsed in linear time, and rejected by the API', async () => {
  expect(parseEndpoint(`http://host/v1${slashes}`, 'openai', '/chat').href).toBe('http://host/v1')
  expect(parseEndpoint(`http://host${slashes}x`, 'openai', '/chat').pathname).toHaveLength(slashes.length + 1)
  const wb = await open()
  const { workspaceId } = await makeWorkspace(wb)
  const endpointBaseUrl = `http://host${slashes}x`
  const body = { name: 'slow', provider: 'openai', modelName: 'm', endpointBaseUrl }
  const created = wb.call(llmServices.create, { params: { workspaceId }, body })
  await expect(created).rejects.toMatchObject({ code: 'validation_error' })
})

test('the reason of a provider is matched only against its beginning', async () => {
  const provider = await startChatServer()
  provider.script({ status: 404, body: { error: { message: `${'x'.repeat(3_000)} no such model` } } })
  const wb = await open({
    config: { runtime: { secretRefs: { allow: [{ ref: 'env:OPENAI_API_KEY' }] } } },
    environment: { OPENAI_API_KEY: 'key' },
  })
  const { workspaceId } = await makeWorkspace(wb)
  const body = {
    name: 'wordy',
    provider: 'openai',
    modelName: 'm',
    endpointBaseUrl: provider.url,
    credentialRef: 'env:OPENAI_API_KEY',
  }
  await wb.call(llmServices.create, { params: { workspaceId }, body })
  provider.script(refusals.unknownModel)
  const again = wb.call(llmServices.create, { params: { workspaceId }, body })
  await expect(again).rejects.toMatchObject({ code: 'llm_model_unavailable' })
})

const pings = Array.from({ length: 30_000 }, (_, id) => `{"jsonrpc":"2.0","id":"p${id}","method":"ping"}`)

test.each([
  ['in a stream', 'text/event-stream', pings.map(ping => `data: ${ping}\n\n`).join(''), /more than 64/],
  ['in a batch', 'Application/JSON', ` [${pings.join()}]`, /does not respond like an MCP server/],
])('a tool server that sends endless requests %s is disconnected', async (_, mediaType, answer, message) => {
  const server = await startMcpServer({
    usesSessions: true,
    intercept: async request => {
      if (request.method !== 'POST') return undefined
      const { method } = (await request.clone().json()) as { method?: string }
      const headers = { 'content-type': mediaType }
      if (method === undefined) return new Response(null, { status: 202 })
      return method === 'tools/list' ? new Response(answer, { headers }) : undefined
    },
  })
  const wb = await open()
  const { workspaceId } = await makeWorkspace(wb)
  const { mcpServerId } = await wb.call(mcpServers.create, {
    params: { workspaceId },
    body: { label: 'chatty', url: server.url },
  })
  const { error, latencyMs } = await wb.call(mcpServers.testConnection, {
    params: { workspaceId, mcpServerId },
  })
  expect(error).toMatchObject({ code: 'protocol_error', message: expect.stringMatching(message) })
  expect(latencyMs).toBeLessThan(3_000)
  expect(server.received.length).toBeLessThan(100)
})

test('tool server listings are shortened before they are stored, and at most eight servers are called at once', async () => {
  const schema = { type: 'object', title: 'x'.repeat(10_000) }
  const tools: McpTool[] = Array.from({ length: 400 }, (_, at) => ({
    name: at === 0 ? 'n'.repeat(600) : `t${at}`,
    description: 'd'.repeat(10_000),
    inputSchema: schema,
  }))
  let running = 0
  let most = 0
  const wb = await open({
    listTools: async () => {
      most = Math.max(most, ++running)
      await new Promise(setImmediate)
      running--
      return tools
    },
  })
  const { workspaceId } = await makeWorkspace(wb)
  for (let at = 0; at < 20; at++)
    await wb.call(mcpServers.create, {
      params: { workspaceId },
      body: { label: `s${at}`, url: 'http://127.0.0.1:9/mcp' },
    })
  const { items } = await wb.call(agents.tools, { params: { workspaceId } })
  expect(most).toBe(8)
  expect(JSON.stringify(items).length).toBeLessThan(18_000_000)
  const offered = items.filter(({ source }) => source === 'mcp')
  expect(offered.length).toBeGreaterThan(1_000)
  expect(offered.filter(({ id }) => id.length > 512)).toEqual([])
})
