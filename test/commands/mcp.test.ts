import { expect, test } from 'vitest'
import { startMcpServer } from '../fakes/mcp-server.ts'
import { inTerminal, withoutSequences } from './terminal.ts'
import { type Ended, type Place, place } from './wb.ts'

const nowhere = 'http://127.0.0.1:9/mcp'
const servers = (...words: string[]) => ['mcp', 'servers', ...words]

async function said(run: Promise<Ended>): Promise<string> {
  const { status, stdout, stderr } = await run
  expect({ status, stderr }).toMatchObject({ status: 0 })
  return stdout.trimEnd()
}

const shown = async ({ wb }: Place, name: string) =>
  JSON.parse(await said(wb(servers('show', name, '--json')))) as Record<string, unknown>

test('MCP servers are added, listed, shown, changed and removed by name', { timeout: 60_000 }, async () => {
  const here = place()
  const { wb, serve } = here
  await serve()
  await said(wb(['workspaces', 'create', 'demo']))
  const added = await wb(
    servers('add', 'tools', nowhere, '--tool', 'search', '--credential', 'env:TOOLS_KEY'),
  )
  expect(added).toEqual({
    status: 0,
    stdout: expect.stringMatching(/^[0-9a-f-]{36}\n$/),
    stderr: [
      '  wb services allow env:TOOLS_KEY --host 127.0.0.1:9',
      '    lets it use that secret, if it may not yet',
      '  wb mcp servers test tools',
      '',
    ].join('\n'),
  })
  const id = added.stdout.trim()
  expect(await said(wb(servers('list')))).toBe([id, 'tools', nowhere, '1', 'yes'].join('\t'))
  expect(await said(wb(servers('show')))).toContain('credential\tenv:TOOLS_KEY\ntools\tsearch\n')
  const change = ['--name', 'other', '--address', 'http://127.0.0.1:8/mcp', '--no-credential', '--all-tools']
  expect(await said(wb(servers('update', 'tools', ...change, '--no-enabled')))).toBe(id)
  expect(await shown(here, 'other')).toMatchObject({
    mcpServerId: id,
    label: 'other',
    url: 'http://127.0.0.1:8/mcp',
    credentialRef: null,
    allowedTools: null,
    enabled: false,
  })
  expect(await wb(servers('update', 'other'))).toMatchObject({ status: 2, stdout: '' })
  expect(await wb(servers('remove', 'other'))).toMatchObject({
    status: 2,
    stderr: expect.stringContaining('This deletes MCP server other at http://127.0.0.1:8/mcp'),
  })
  await said(wb(servers('remove', 'other', '--yes')))
  expect(await wb(servers('show', 'other'))).toMatchObject({ status: 4 })
})

test('what is missing is a usage error in a pipe', async () => {
  const { wb } = place()
  for (const words of [['add'], ['add', 'tools'], ['remove']])
    expect(await wb(servers(...words))).toMatchObject({ status: 2, stdout: '' })
})

test('a test lists the tools, or says what stands in the way and ends with 1', {
  timeout: 60_000,
}, async () => {
  const tools = await startMcpServer({ tools: ['search', 'add'] })
  const { wb, serve } = place()
  await serve()
  await said(wb(['workspaces', 'create', 'demo']))
  await said(wb(servers('add', 'tools', tools.url, '--tool', 'add')))
  expect(await said(wb(servers('test', 'tools')))).toBe('add\tyes\nsearch\tno')
  await said(wb(servers('add', 'gone', nowhere)))
  const failed = await wb(servers('test', 'gone'))
  expect(failed).toMatchObject({ status: 1, stderr: expect.stringContaining('cannot be reached') })
  const json = await wb(servers('test', 'gone', '--json'))
  expect(json.status).toBe(1)
  expect(JSON.parse(json.stdout)).toMatchObject({ ok: false, error: { code: 'unreachable' } })
})

test('in a terminal what is missing is asked for, the release is offered, and removal asks for the name', {
  timeout: 60_000,
}, async () => {
  const here = place()
  await said(here.wb(['workspaces', 'create', 'demo']))
  const answers: [RegExp, string][] = [
    [/NAME.*:/, 'tools\r'],
    [/URL.*:/, `${nowhere}\r`],
    [/Let this workspace send/, 'n\r'],
  ]
  const added = await inTerminal(here, servers('add', '--credential', 'env:TOOLS_KEY'), {
    answer: text => {
      const [asked, typed] = answers[0] ?? []
      if (!asked?.test(withoutSequences(text))) return undefined
      answers.shift()
      return typed
    },
  })
  expect({ status: added.status, left: answers }).toEqual({ status: 0, left: [] })
  expect((await shown(here, 'tools')).url).toBe(nowhere)
  const removed = await inTerminal(here, servers('remove', 'tools'), {
    answer: text => (/Type tools to go on/.test(withoutSequences(text)) ? 'tools\r' : undefined),
  })
  expect(removed.status).toBe(0)
  expect(await here.wb(servers('show', 'tools'))).toMatchObject({ status: 4 })
})
