import { expect, test } from 'vitest'
import { mcpServers } from '../../../src/contract/mcp-servers.ts'
import { exampleServer } from '../../fakes/example-server.ts'
import { startMcpServer } from '../../fakes/mcp-server.ts'
import { eventData, openTestChat } from '../../harness/test-chat.ts'

const calls: Record<string, object> = {
  weather: { city: 'Ulm' },
  measure: { city: 'Ulm' },
  astray: { city: 'Ulm' },
  chart: {},
  divide: { dividend: 1, divisor: 0 },
  count: {},
}

const structured = '{"celsius":7,"sky":"grey"}'

test.each([
  ['of the revision of 2026', {}],
  ['of the revision of 2025, in sessions', { inSessions: true }],
])("a server written like the example of its library, %s, works in an agent's turn", async (_, options) => {
  const { url } = await startMcpServer({ createServer: exampleServer, ...options })
  const names: string[] = []
  const { model, stream } = await openTestChat({
    async prepare({ call }, workspaceId) {
      const body = { label: 'example', url }
      const { mcpServerId } = await call(mcpServers.create, { params: { workspaceId }, body })
      names.push(...Object.keys(calls).map(name => `mcp:${mcpServerId}:${name}`))
      const toolRules = { 'mcp:*': { permission: 'allow', afterReading: 'allow' } } as const
      return { toolIds: names, toolRules }
    },
  })
  const wanted = [...Object.values(calls), { dividend: 'one' }]
  model.respond(({ body }) => {
    const offeredNames = (body.tools as { function: { name: string } }[]).map(tool => tool.function.name)
    const of = (name: string) => offeredNames.find(one => one.includes(name))!
    const toolCalls = [...Object.keys(calls), 'divide'].map((name, at) => ({
      id: `call_${at}`,
      name: of(name),
      arguments: wanted[at]!,
    }))
    return model.received.length === 1 ? { toolCalls } : { text: 'Done.' }
  })
  const events = await stream('go')
  const results = eventData(events, 'tool-result').map(({ content, outcome }) => [outcome, content])
  expect(results).toEqual([
    ['success', structured],
    ['success', structured],
    ['failure', expect.stringMatching(/^Error: .*astray/)],
    [
      'success',
      [
        'Rain, by month:',
        '[image left out]',
        '[audio left out]',
        '[link rain.csv file:///rain.csv]',
        '[resource file:///rain.csv]',
        'month,mm',
        'It rains in May.',
      ].join('\n'),
    ],
    ['failure', 'Error: nothing is divided by zero'],
    ['success', 'three'],
    ['failure', expect.stringMatching(/^Error: .*divide/)],
  ])
  expect(eventData(events, 'done')).toHaveLength(1)
  const tools = model.received[0]!.body.tools as { function: { name: string; description: string } }[]
  expect(tools.map(tool => tool.function.description)).toContain('The weather now.')
  const offeredNames = tools.map(tool => tool.function.name)
  expect(offeredNames.sort()).toEqual(
    Object.keys(calls)
      .map(name => `example_${name}`)
      .sort(),
  )
  expect(JSON.stringify(tools)).not.toMatch(/readme|greet/)
})
