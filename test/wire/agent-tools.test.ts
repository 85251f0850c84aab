import { expect, test } from 'vitest'
import { startMcpServer } from '../fakes/mcp-server.ts'
import { makeWorkspace } from './fixtures.ts'
import { type Row, useServer } from './harness.ts'

const wire = useServer()

test('S7.3-agent_tool_unresolved: accepts the tools of a real server only while the server is registered', async () => {
  const { url } = await startMcpServer({ tools: ['search', 'add'] })
  const workspace = await makeWorkspace(wire)
  const servers = `${workspace}/mcp-servers`
  const serverId = await wire.make(servers, { label: 'arithmetic', url }, 'mcpServerId')
  const offered = async () =>
    (await wire.items(`${workspace}/available-tools`)).filter(({ source }) => source === 'mcp')

  const found = await offered()
  expect(found.map(({ id }) => id).sort()).toEqual([`mcp:${serverId}:add`, `mcp:${serverId}:search`])
  for (const tool of found)
    expect(tool).toMatchObject({ serverId, serverLabel: 'arithmetic', inputSchema: { type: 'object' } })

  const toolIds = [`mcp:${serverId}:add`]
  const agentId = await wire.make(`${workspace}/agents`, { name: 'counts', toolIds }, 'agentId')
  const allowed = await wire.send(`PATCH ${servers}/${serverId}`, { json: { allowedTools: ['search'] } })
  expect(allowed.status).toBe(200)
  expect((await offered()).map(({ id }) => id)).toEqual([`mcp:${serverId}:search`])
  const refused = { json: { name: 'too', toolIds } }
  await wire.refused(`POST ${workspace}/agents`, refused, 422, 'agent_tool_unresolved', /:add$/)

  await wire.exchange(`DELETE ${servers}/${serverId}`, undefined, 204, undefined)
  expect(await offered()).toEqual([])
  expect(((await wire.get(`${workspace}/agents/${agentId}`)) as Row).toolIds).toEqual(toolIds)
  const kept = await wire.send(`PATCH ${workspace}/agents/${agentId}`, { json: { toolIds } })
  expect(kept.status).toBe(200)
})
