import fc from 'fast-check'
import { expect, test } from 'vitest'
import { narrowTools, toolsMax } from '../../../src/agents/tools/narrow-tools.ts'
import type { Tool } from '../../../src/agents/tools/tool.ts'
import { mcpServers } from '../../../src/contract/mcp-servers.ts'
import { startMcpServer } from '../../fakes/mcp-server.ts'
import { eventData, openTestChat } from '../../harness/test-chat.ts'

function tool(id: string, description = '', fields: Partial<Tool> = {}): Tool {
  return {
    id,
    description,
    source: id.startsWith('mcp:') ? 'mcp' : 'builtin',
    inputSchema: { type: 'object' },
    isExternal: false,
    readsUntrusted: false,
    hash: '',
    call: () => Promise.reject(new Error('not called')),
    ...fields,
  }
}

/** Returns tools without a word of the question. */
function unrelatedTools(count: number): Tool[] {
  return Array.from({ length: count }, (_, at) => tool(`mcp:s:thing${at}`, 'does something else'))
}

function idsOf(tools: readonly Tool[]): string[] {
  return tools.map(({ id }) => id)
}

test('a number of tools that the model accepts is not reduced', () => {
  const tools = unrelatedTools(toolsMax)
  expect(narrowTools(tools, 'x')).toBe(tools)
})

test('tools of the runtime and matching tools of servers are kept', () => {
  const wanted = [
    tool('mcp:s:createIssue', 'Opens a ticket.'),
    tool('mcp:s:find', 'Finds issues by their words.'),
    tool('mcp:t:list', 'Lists them.', { serverLabel: 'Issues' }),
  ]
  const tools = [
    ...unrelatedTools(200),
    ...wanted,
    tool('search_kb'),
    tool('native:fetch', '', { source: 'native' }),
  ]
  const kept = idsOf(narrowTools(tools, 'Which issue is open?'))
  expect(kept).toHaveLength(toolsMax)
  expect(kept).toEqual(expect.arrayContaining([...idsOf(wanted), 'search_kb', 'native:fetch']))
  expect(kept.slice(0, 2)).toEqual(['mcp:s:thing0', 'mcp:s:thing1'])
})

test('any tools and question leave as many tools as the model accepts, always the same, in order', () => {
  const word = fc.constantFrom('issue', 'wiki', 'page', 'open', 'find', 'the')
  const text = fc.array(word, { maxLength: 4 }).map(words => words.join(' '))
  fc.assert(
    fc.property(fc.array(text, { minLength: 100, maxLength: 160 }), text, (descriptions, question) => {
      const tools = descriptions.map((description, at) =>
        tool(at % 40 === 0 ? `own${at}` : `mcp:s:t${at}`, description),
      )
      const kept = narrowTools(tools, question)
      expect(kept).toHaveLength(Math.min(tools.length, toolsMax))
      expect(tools.filter(one => kept.includes(one))).toEqual(kept)
      expect(kept).toEqual(narrowTools(tools, question))
      for (const one of tools) if (one.source !== 'mcp') expect(kept).toContain(one)
    }),
    { numRuns: 50 },
  )
})

test('an agent with too many tools gets one selection for all rounds, and the answer counts the omitted ones', async () => {
  const names = Array.from({ length: 150 }, (_, at) => `tool${at}`)
  const { url } = await startMcpServer({
    tools: [...names, { name: 'weather', description: () => 'Rain and sun.' }],
  })
  const { model, stream, loggedProblems, agent } = await openTestChat({
    async prepare({ call }, workspaceId) {
      const body = { label: 'my tools', url }
      const { mcpServerId } = await call(mcpServers.create, { params: { workspaceId }, body })
      return { toolIds: ['search_kb', ...[...names, 'weather'].map(name => `mcp:${mcpServerId}:${name}`)] }
    },
  })
  model.script({ toolCalls: [{ name: 'my_tools_weather' }] }, { text: 'Rain.' })
  const events = await stream('Will there be rain?')
  expect(eventData(events, 'tool-result')).toMatchObject([{ outcome: 'success', content: 'weather' }])
  const given = model.received.map(({ body }) =>
    (body.tools as { function: { name: string } }[]).map(({ function: { name } }) => name),
  )
  expect(given[0]).toHaveLength(toolsMax)
  expect(given[0]).toEqual(expect.arrayContaining(['search_kb', 'my_tools_weather']))
  expect(given[1]).toEqual(given[0])
  expect(eventData(events, 'done')[0]!.metadata).toMatchObject({ tools_left_out: '24' })
  expect(loggedProblems).toMatchObject([{ facts: { agentId: agent.agentId, tools: 152, leftOut: 24 } }])
})
