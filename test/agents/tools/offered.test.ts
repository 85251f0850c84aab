import { describe, expect, onTestFinished, test } from 'vitest'
import type { ListRemoteTools } from '../../../src/agents/tools/remote-tools.ts'
import { agents } from '../../../src/contract/agents.ts'
import type { McpTool } from '../../../src/models/mcp/client.ts'
import { openEmbeddedStore } from '../../../src/storage/open.ts'
import { type McpServerRow, tables } from '../../../src/storage/tables.ts'
import { makeAgent } from '../../harness/agents.ts'
import { makeWorkspace } from '../../harness/resources.ts'
import { open, scratchDir, TestClock, type TestRuntimeOptions, waitUntil } from '../../harness/runtime.ts'

const ids = [
  '10000000-0000-4000-8000-000000000001',
  '20000000-0000-4000-8000-000000000002',
  '30000000-0000-4000-8000-000000000003',
]

function tool(name: string, fields: Partial<McpTool> = {}): McpTool {
  return { name, description: `does ${name}`, inputSchema: { type: 'object' }, ...fields }
}

/** Opens a runtime with registered servers and their responses, and records each listing request. */
async function openWithServers(
  answers: readonly (ListRemoteTools | undefined)[],
  options: TestRuntimeOptions = {},
) {
  const clock = new TestClock()
  const listedServers: string[] = []
  const listTools: ListRemoteTools = (server, signal) => {
    listedServers.push(server.mcpServerId)
    return answers[ids.indexOf(server.mcpServerId)]!(server, signal)
  }
  const dataDir = `${scratchDir()}/data`
  const wb = await open({ ...options, dataDir, clock, listTools })
  const { workspaceId } = await makeWorkspace(wb)
  const store = await openEmbeddedStore({ path: `${dataDir}/workbase.db` })
  onTestFinished(() => store.close())
  const register = async (at: number, fields: Partial<McpServerRow> = {}) => {
    const now = new Date(clock.now()).toISOString()
    const row: McpServerRow = {
      workspaceId,
      mcpServerId: ids[at]!,
      label: `server ${at}`,
      url: `https://tools${at}.example.com/mcp`,
      credentialRef: null,
      authType: 'credential',
      oauthClientId: null,
      oauthClientSecretRef: null,
      oauthScopes: null,
      enabled: true,
      allowedTools: null,
      createdAt: now,
      updatedAt: now,
      reviewedTools: null,
      ...fields,
    }
    const key = [workspaceId, row.mcpServerId]
    const isNew = !(await store.rows.get(tables.mcpServers, key))
    await store.rows.atomic([{ op: isNew ? 'insert' : 'replace', table: tables.mcpServers, row }])
  }
  // Registers the servers in reverse order. The list is sorted by ID.
  for (const at of [...answers.keys()].reverse()) await register(at)
  const available = async () => {
    const { items } = await wb.call(agents.tools, { params: { workspaceId } })
    return items.filter(({ source }) => source !== 'builtin')
  }
  const offered = async () => (await available()).map(({ id }) => id)
  return { wb, workspaceId, clock, asked: listedServers, register, available, offered }
}

const listsTools =
  (...tools: McpTool[]): ListRemoteTools =>
  async () =>
    tools
const fails: ListRemoteTools = () => Promise.reject(new Error('ECONNREFUSED 10.1.2.3:443'))
const hangs: ListRemoteTools = () => new Promise(() => {})

describe('tools of MCP servers', () => {
  test('are listed with the ID and label of their server, sorted by server ID', async () => {
    const inputSchema = { type: 'object', properties: { city: { type: 'string' } } }
    const { available } = await openWithServers([
      listsTools(tool('look', { inputSchema }), tool('a:b')),
      listsTools(tool('look', { description: '' })),
    ])
    const [one, two] = ids
    const of = (id: string, at: number) => ({ source: 'mcp', serverId: id, serverLabel: `server ${at}` })
    expect(await available()).toEqual([
      { id: `mcp:${one}:look`, description: 'does look', inputSchema, ...of(one!, 0) },
      { id: `mcp:${one}:a:b`, description: 'does a:b', inputSchema: { type: 'object' }, ...of(one!, 0) },
      { id: `mcp:${two}:look`, description: '', inputSchema: { type: 'object' }, ...of(two!, 1) },
    ])
  })

  test('have oversized descriptions cut, and unusable schemas replaced by permissive ones', async () => {
    const long = { type: 'object', description: 'x'.repeat(16_384) }
    const most = { type: 'object', d: 'x'.repeat(16_384 - '{"type":"object","d":""}'.length) }
    const { available } = await openWithServers([
      listsTools(
        tool('wordy', { description: 'd'.repeat(1_025) }),
        tool('most', { description: 'd'.repeat(1_024), inputSchema: most }),
        tool('long', { inputSchema: long }),
        tool('list', { inputSchema: { type: 'array' } }),
      ),
    ])
    const [wordy, whole, ...others] = await available()
    expect(wordy!.description).toHaveLength(1_024)
    expect(whole).toMatchObject({ description: 'd'.repeat(1_024), inputSchema: most })
    for (const { inputSchema } of others)
      expect(inputSchema).toEqual({ type: 'object', additionalProperties: true })
  })

  test('are limited to five hundred per server', async () => {
    const { available } = await openWithServers([
      listsTools(...Array.from({ length: 502 }, (_, n) => tool(`tool${n}`))),
    ])
    expect(await available()).toHaveLength(500)
  })

  test('are limited to enabled servers and their allowlists; an empty allowlist allows none', async () => {
    const { offered, register, asked } = await openWithServers([
      listsTools(tool('a'), tool('b')),
      listsTools(tool('a')),
    ])
    await register(0, { allowedTools: ['b', 'c'] })
    await register(1, { enabled: false })
    expect(await offered()).toEqual([`mcp:${ids[0]}:b`])
    await register(0, { allowedTools: [] })
    expect(await offered()).toEqual([])
    expect(asked).not.toContain(ids[1])
  })

  test('are cached for the configured time, and until the server is changed', async () => {
    const { offered, register, asked, clock } = await openWithServers([listsTools(tool('a'))])
    await offered()
    clock.advance(59_000)
    await offered()
    await register(0, { allowedTools: ['b'] })
    expect([await offered(), asked.length]).toEqual([[], 2])
    clock.advance(60_001)
    await offered()
    expect(asked).toHaveLength(3)
    await register(0, { updatedAt: '2026-01-01T00:00:00.000Z', url: 'https://elsewhere.example.com/mcp' })
    await offered()
    expect(asked).toHaveLength(4)
  })

  test('are not cached with a time of 0', async () => {
    const config = { chat: { tools: { mcp: { discoveryTtlMs: 0 } } } }
    const { offered, asked } = await openWithServers([listsTools(tool('a'))], { config })
    await offered()
    await offered()
    expect(asked).toHaveLength(2)
  })

  test('are requested once for concurrent requests', async () => {
    const { offered, asked } = await openWithServers([listsTools(tool('a'))])
    const all = await Promise.all([offered(), offered(), offered()])
    expect(all).toEqual(Array(3).fill([`mcp:${ids[0]}:a`]))
    expect(asked).toHaveLength(1)
  })

  test('of a failing server are omitted and requested again, with a log entry, and other servers are not affected', async () => {
    const { wb, workspaceId, offered, asked } = await openWithServers([fails, listsTools(tool('a'))])
    for (let count = 0; count < 2; count++) expect(await offered()).toEqual([`mcp:${ids[1]}:a`])
    expect(asked.filter(id => id === ids[0])).toHaveLength(2)
    expect(wb.loggedProblems).toMatchObject(
      Array(2).fill({
        message: 'an MCP server did not list its tools',
        facts: { workspaceId, mcpServerId: ids[0] },
      }),
    )
  })

  test('are requested from all servers at once, and a server that hangs is aborted after five seconds', async () => {
    let given: AbortSignal | undefined
    const { offered, asked, clock, wb } = await openWithServers([
      hangs,
      (_server, signal) => {
        given = signal
        return hangs(_server, signal)
      },
      listsTools(tool('a')),
    ])
    const listing = offered()
    await waitUntil(() => asked.length === 3)
    clock.advance(4_999)
    expect(given!.aborted).toBe(false)
    clock.advance(1)
    expect(await listing).toEqual([`mcp:${ids[2]}:a`])
    expect(given!.aborted).toBe(true)
    expect(wb.loggedProblems).toHaveLength(2)
  })
})

describe('tools of an agent', () => {
  test('are accepted while their server lists them, and only named servers are called', async () => {
    const { wb, workspaceId, asked } = await openWithServers([listsTools(tool('look')), hangs])
    const toolIds = [`mcp:${ids[0]}:look`, 'search_kb']
    expect(await makeAgent(wb, { workspaceId, toolIds })).toMatchObject({ toolIds })
    expect(asked).toEqual([ids[0]])
  })

  test('S7.3-agent_tool_unresolved: are rejected if their server is down, disabled, unknown, or does not allow them', async () => {
    const { wb, workspaceId, register } = await openWithServers([
      fails,
      listsTools(tool('a')),
      listsTools(tool('a')),
    ])
    await register(1, { enabled: false })
    await register(2, { allowedTools: ['b'] })
    for (const toolId of [...ids.map(id => `mcp:${id}:a`), 'mcp:nobody:a', 'mcp:a', 'mcp:'])
      await expect(makeAgent(wb, { workspaceId, toolIds: [toolId] })).rejects.toMatchObject({
        code: 'agent_tool_unresolved',
        status: 422,
        message: expect.stringContaining(toolId),
      })
  })

  test('remain when their server goes down, and can be removed', async () => {
    let isUp = true
    const { wb, workspaceId, clock } = await openWithServers([
      async (...given) => (isUp ? listsTools(tool('a'), tool('b'))(...given) : fails(...given)),
    ])
    const [a, b] = [`mcp:${ids[0]}:a`, `mcp:${ids[0]}:b`]
    const { agentId } = await makeAgent(wb, { workspaceId, toolIds: [a] })
    isUp = false
    clock.advance(60_001)
    const params = { workspaceId, agentId }
    const patched = await wb.call(agents.update, { params, body: { toolIds: ['search_kb', a] } })
    expect(patched.toolIds).toEqual([a, 'search_kb'])
    await expect(wb.call(agents.update, { params, body: { toolIds: [a, b] } })).rejects.toMatchObject({
      code: 'agent_tool_unresolved',
      message: expect.not.stringContaining(a),
    })
    expect((await wb.call(agents.show, { params })).toolIds).toEqual([a, 'search_kb'])
    await wb.call(agents.update, { params, body: { toolIds: [] } })
    await expect(wb.call(agents.update, { params, body: { toolIds: [a] } })).rejects.toMatchObject({
      code: 'agent_tool_unresolved',
    })
  })

  test.each<[object, readonly string[]]>([
    [{}, []],
    [{ fetch: { enabled: true } }, ['native:fetch']],
    [
      { webSearch: { enabled: true, provider: 'tavily', apiKeyRef: 'env:TAVILY_API_KEY' } },
      ['native:web_search'],
    ],
    [{ webSearch: { enabled: true, provider: 'tavily' } }, []],
    [{ webSearch: { enabled: true, apiKeyRef: 'env:TAVILY_API_KEY' } }, []],
    [{ webSearch: { enabled: false, provider: 'tavily', apiKeyRef: 'env:TAVILY_API_KEY' } }, []],
  ])('of the runtime are those that the configuration enables: %j', async (tools, expected) => {
    const { wb, workspaceId, available } = await openWithServers([], { config: { chat: { tools } } })
    const found = await available()
    expect(found.map(({ id, source }) => [id, source])).toEqual(expected.map(id => [id, 'native']))
    for (const toolId of ['native:fetch', 'native:web_search']) {
      const made = makeAgent(wb, { workspaceId, toolIds: [toolId] })
      if (expected.includes(toolId)) expect(await made).toMatchObject({ toolIds: [toolId] })
      else await expect(made).rejects.toMatchObject({ code: 'agent_tool_unresolved' })
    }
  })

  test('include a web search with the configured maximum number of results', async () => {
    const webSearch = { enabled: true, provider: 'tavily', apiKeyRef: 'env:TAVILY_API_KEY', maxResults: 7 }
    const { available } = await openWithServers([], { config: { chat: { tools: { webSearch } } } })
    const [search] = await available()
    expect(search!.inputSchema).toMatchObject({ properties: { limit: { minimum: 1, maximum: 7 } } })
  })
})
