import { expect, test } from 'vitest'
import { startMcpServer } from '../fakes/mcp-server.ts'
import { type CommandResult, type Sandbox, sandboxFactory } from './sandbox.ts'

const timeout = 60_000
const unreachableUrl = 'http://127.0.0.1:9/mcp'

async function stdoutOf(run: Promise<CommandResult>): Promise<string> {
  const { status, stdout, stderr } = await run
  expect({ status, stderr }).toMatchObject({ status: 0 })
  return stdout.trimEnd()
}

/** A sandbox with a workspace named `demo`. */
const sandboxWithWorkspace = sandboxFactory(async ({ wb }) => ({
  workspaceId: await stdoutOf(wb(['workspaces', 'create', 'demo'])),
}))

const add = ({ wb }: Sandbox, name: string, url: string) => stdoutOf(wb(['mcp', 'servers', 'add', name, url]))

test('an agent gets tools by name, as SERVER/TOOL, or all tools of a server', {
  timeout,
}, async () => {
  const sandbox = await sandboxWithWorkspace()
  const { wb, serve } = sandbox
  const issues = await startMcpServer({ tools: ['search', 'add', 'search_kb', 'fetch'] })
  const wiki = await startMcpServer({ tools: ['search', 'read'] })
  await serve()
  const issuesId = await add(sandbox, 'issues', issues.url)
  const wikiId = await add(sandbox, 'my wiki', wiki.url)
  const listed = (await stdoutOf(wb(['agents', 'tools']))).split('\n').map(line => line.split('\t'))
  expect(listed.map(([id, name]) => [id, name])).toContainEqual([`mcp:${wikiId}:search`, 'my wiki/search'])
  const given = async (...tools: string[]) => {
    const flags = tools.flatMap(tool => ['--tool', tool])
    const { toolIds } = JSON.parse(await stdoutOf(wb(['agents', 'update', 'Bobby', '--json', ...flags]))) as {
      toolIds: string[]
    }
    return toolIds
  }
  expect(await given('search_kb', 'add', 'my wiki/search')).toEqual(
    ['search_kb', `mcp:${issuesId}:add`, `mcp:${wikiId}:search`].sort(),
  )
  expect(await given(`mcp:${issuesId}:search`)).toEqual([`mcp:${issuesId}:search`])
  expect(await given('my wiki')).toEqual([`mcp:${wikiId}:read`, `mcp:${wikiId}:search`])

  const refused = async (tool: string) => {
    const { status, stderr } = await wb(['agents', 'create', 'x', '--prompt', 'Be brief.', '--tool', tool])
    return [
      status,
      ...stderr
        .trimEnd()
        .split('\n')
        .map(line => line.trim()),
    ]
  }
  expect(await refused('search')).toEqual([
    2,
    '✗ "search" is the name of 2 tools or servers',
    '"my wiki/search"',
    'issues/search',
  ])
  expect(await refused('fetch')).toEqual([
    2,
    '✗ "fetch" is the name of 2 tools or servers',
    'issues/fetch',
    'native:fetch    disabled',
  ])
  expect(await refused('web_search')).toEqual([
    1,
    '✗ The tool native:web_search is disabled; enable it under chat.tools in the configuration (agent_tool_unresolved)',
    'wb agents tools',
  ])
  expect(await given('issues/fetch')).toEqual([`mcp:${issuesId}:fetch`])
  expect(await refused('issues/serch')).toEqual([
    1,
    '✗ No tool is named "issues/serch" (agent_tool_unresolved)',
    'did you mean issues/search?',
    'wb agents tools',
  ])
  expect(await refused('serch_kb')).toContain('did you mean search_kb?')
  await add(sandbox, 'gone', unreachableUrl)
  expect(await refused('gone/look')).toEqual([
    1,
    '✗ MCP server gone offers no tool "look" to agents (agent_tool_unresolved)',
    'wb agents tools',
    'wb mcp servers review gone',
  ])
})

test("shows the names of an agent's LLM service, knowledge bases and tools, and their IDs with --json", {
  timeout,
}, async () => {
  const sandbox = await sandboxWithWorkspace()
  const { wb, serve } = sandbox
  const issues = await startMcpServer({ tools: ['search', 'add'] })
  await serve()
  await stdoutOf(wb(['kb', 'create', 'handbook']))
  await add(sandbox, 'issues', issues.url)
  const bindings = ['--kb', 'handbook', '--tool', 'issues/add', '--tool', 'search_kb']
  await stdoutOf(wb(['agents', 'update', 'Bobby', ...bindings]))
  const agent = JSON.parse(await stdoutOf(wb(['agents', 'show', 'Bobby', '--json']))) as Record<
    string,
    string[]
  >
  const [addId] = agent.toolIds!.filter(id => id.endsWith(':add'))
  await stdoutOf(wb(['agents', 'update', 'Bobby', '--rule', `${addId}=ask`, '--rule', 'mcp:*=deny']))
  const shown = await stdoutOf(wb(['agents', 'show', 'Bobby']))
  expect(shown).toMatch(/\nknowledge bases\thandbook\n/)
  expect(shown).toMatch(/\ntools\tissues\/add, search_kb\n/)
  expect(shown).toMatch(/\nrules\tissues\/add=ask, mcp:\*=deny\n/)
  const service = JSON.parse(
    await stdoutOf(wb(['services', 'show', String(agent.llmServiceId), '--json'])),
  ) as Record<string, string>
  expect(shown).toContain(`\nLLM service\t${service.name}\n`)

  await add(sandbox, 'gone', unreachableUrl)
  const rules = ['add=deny', 'issues=ask', 'gone/*=deny', 'list_*=ask', 'search_kb=allow']
  await stdoutOf(wb(['agents', 'update', 'Bobby', ...rules.flatMap(rule => ['--rule', rule])]))
  const ruled = await stdoutOf(wb(['agents', 'show', 'Bobby']))
  const named = /\nrules\t(.*)\n/.exec(ruled)![1]!.split(', ')
  expect(named.sort()).toEqual([
    'gone/*=deny',
    'issues/*=ask',
    'issues/add=deny',
    'list_*=ask',
    'search_kb=allow',
  ])
  expect(await wb(['agents', 'update', 'Bobby', '--rule', 'ad_=deny'])).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('did you mean add?'),
  })
  await stdoutOf(wb(['mcp', 'servers', 'remove', 'issues', '--yes']))
  expect(await stdoutOf(wb(['agents', 'show', 'Bobby']))).toContain(`\ntools\t${addId}, search_kb\n`)
})
