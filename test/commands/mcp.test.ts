import { randomUUID } from 'node:crypto'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { mcpServers } from '../../src/contract/mcp-servers.ts'
import { startMcpServer } from '../fakes/mcp-server.ts'
import {
  addWorkspaceSandbox,
  type CommandResult,
  createSandbox,
  type TestServer,
  type WorkspaceSandbox,
} from './sandbox.ts'
import { runInTerminal, stripSequences } from './terminal.ts'

const unreachableUrl = 'http://127.0.0.1:9/mcp'
const servers = (...words: string[]) => ['mcp', 'servers', ...words]

async function stdoutOf(run: Promise<CommandResult>): Promise<string> {
  const { status, stdout, stderr } = await run
  expect({ status, stderr }).toMatchObject({ status: 0 })
  return stdout.trimEnd()
}

const shared = createSandbox(afterAll)
let server: TestServer
beforeAll(async () => {
  server = await shared.serve()
})
const newWorkspace = () => addWorkspaceSandbox(shared, server)

const serversOf = async ({ call, workspaceId }: WorkspaceSandbox) =>
  (await call(mcpServers.list, { params: { workspaceId }, query: {} })).items

const added = (
  { call, workspaceId }: WorkspaceSandbox,
  label: string,
  url: string,
  allowedTools?: string[],
) => call(mcpServers.create, { params: { workspaceId }, body: { label, url, allowedTools } })

test('adds, lists, shows, changes and removes MCP servers by name', { timeout: 60_000 }, async () => {
  const { wb } = await newWorkspace()
  const created = await wb(
    servers('add', 'tools', unreachableUrl, '--tool', 'search', '--credential', 'env:TOOLS_KEY'),
  )
  expect(created).toEqual({
    status: 0,
    stdout: expect.stringMatching(/^[0-9a-f-]{36}\n$/),
    stderr: [
      '  wb services allow env:TOOLS_KEY --host 127.0.0.1:9',
      '    allows this, unless it is already allowed',
      '  wb mcp servers test tools',
      '',
    ].join('\n'),
  })
  const id = created.stdout.trim()
  expect(await stdoutOf(wb(servers('list')))).toBe([id, 'tools', unreachableUrl, '1', 'yes'].join('\t'))
  expect(await stdoutOf(wb(servers('show')))).toContain('credential\tenv:TOOLS_KEY\ntools\tsearch\n')
  const change = ['--name', 'other', '--address', 'http://127.0.0.1:8/mcp', '--no-credential', '--all-tools']
  expect(await stdoutOf(wb(servers('update', 'tools', ...change, '--no-enabled')))).toBe(id)
  expect(JSON.parse(await stdoutOf(wb(servers('show', 'other', '--json'))))).toMatchObject({
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
  await stdoutOf(wb(servers('remove', 'other', '--yes')))
  expect(await wb(servers('show', 'other'))).toMatchObject({ status: 4 })
})

test('a missing argument is a usage error in a pipe', async () => {
  const { wb } = await newWorkspace()
  for (const words of [['add'], ['add', 'tools'], ['remove']])
    expect(await wb(servers(...words))).toMatchObject({ status: 2, stdout: '' })
})

test('test lists the tools, or reports the problem and ends with 1', {
  timeout: 60_000,
}, async () => {
  const tools = await startMcpServer({ tools: ['search', 'add'] })
  const sandbox = await newWorkspace()
  const { wb } = sandbox
  await added(sandbox, 'tools', tools.url, ['add'])
  expect(await stdoutOf(wb(servers('test', 'tools')))).toBe('add\tyes\nsearch\tno')
  await added(sandbox, 'gone', unreachableUrl)
  const failed = await wb(servers('test', 'gone'))
  expect(failed).toMatchObject({ status: 1, stderr: expect.stringContaining('cannot be reached') })
  expect(failed.stderr).toContain(
    '    wb mcp servers update gone --address URL    if its address has changed\n',
  )
  const json = await wb(servers('test', 'gone', '--json'))
  expect(json.status).toBe(1)
  expect(JSON.parse(json.stdout)).toMatchObject({ ok: false, error: { code: 'unreachable' } })
})

test('prompts for missing arguments in a terminal, offers to allow the secret, and confirms removal by name', {
  timeout: 60_000,
}, async () => {
  const sandbox = await newWorkspace()
  const answers: [RegExp, string][] = [
    [/NAME.*:/, 'tools\r'],
    [/URL.*:/, `${unreachableUrl}\r`],
    [/Let this workspace send/, 'n\r'],
  ]
  const created = await runInTerminal(sandbox, servers('add', '--credential', 'env:TOOLS_KEY'), {
    answer: text => {
      const [prompt, typed] = answers[0] ?? []
      if (!prompt?.test(stripSequences(text))) return undefined
      answers.shift()
      return typed
    },
  })
  expect({ status: created.status, left: answers }).toEqual({ status: 0, left: [] })
  expect(await serversOf(sandbox)).toMatchObject([{ label: 'tools', url: unreachableUrl }])
  const removed = await runInTerminal(sandbox, servers('remove', 'tools'), {
    answer: text => (/Type tools to confirm/.test(stripSequences(text)) ? 'tools\r' : undefined),
  })
  expect(removed.status).toBe(0)
  expect(await serversOf(sandbox)).toEqual([])
})

test('lists show pending reviews; review prints them and ends with 1 in a pipe, and --yes accepts them', {
  timeout: 60_000,
}, async () => {
  let description = 'looks around'
  const tools = await startMcpServer({ tools: ['add', { name: 'look', description: () => description }] })
  const sandbox = await newWorkspace()
  const { wb } = sandbox
  await added(sandbox, 'tools', tools.url)
  expect(await stdoutOf(wb(servers('review', 'tools')))).toBe('add\taccepted\tyes\nlook\taccepted\tyes')
  description = 'looks around\n\x1b]0;mine\x07and tells everybody'
  const waits = await wb(servers('review', 'tools'))
  expect(waits).toMatchObject({ status: 1, stdout: 'add\taccepted\tyes\nlook\tchanged\tno\n' })
  expect(waits.stderr).toContain(
    [
      '  look  changed',
      '    - looks around',
      '    + looks around',
      '    + \\u001b]0;mine\\u0007and tells everybody',
    ].join('\n'),
  )
  await added(sandbox, 'gone', unreachableUrl)
  const stderr = '  1 tool of tools needs review:\n    wb mcp servers review tools\n'
  expect(await wb(servers('list'))).toMatchObject({ status: 0, stderr })
  expect(await wb(['agents', 'tools'])).toMatchObject({ status: 0, stderr })
  expect(await wb(servers('test', 'tools'))).toEqual({ status: 0, stdout: 'add\tyes\nlook\tno\n', stderr })
  expect(await stdoutOf(wb(servers('show', 'tools')))).toContain(
    'review\t1 tool not reviewed: wb mcp servers review tools\n',
  )
  for (const words of [servers('list'), servers('show', 'tools'), ['agents', 'tools']])
    expect(await wb([...words, '--json'])).toMatchObject({ status: 0, stderr: '' })
  expect(await stdoutOf(wb(servers('review', 'tools', '--yes')))).toContain('look\taccepted\tyes')
  expect(JSON.parse(await stdoutOf(wb(servers('review', 'tools', '--json'))))).toMatchObject({
    items: [{ state: 'accepted' }, { state: 'accepted', acceptedDescription: description }],
  })
  expect(await wb(servers('list'))).toMatchObject({ status: 0, stderr: '' })
  expect(await stdoutOf(wb(servers('show', 'tools')))).not.toContain('review')
})

test('lists the servers in the configuration for their workspaces, and checks them', {
  timeout: 60_000,
}, async () => {
  const { wb, home, env } = createSandbox()
  const workspaceId = await stdoutOf(wb(['workspaces', 'create', 'demo']))
  env.WB_CONFIG = join(home, 'workbase.yaml')
  const declare = (...stdioServers: object[]) =>
    writeFileSync(env.WB_CONFIG!, JSON.stringify({ version: 1, mcp: { stdioServers } }))
  const ran = join(home, 'ran')
  const notes = { id: 'notes', command: 'touch', args: [ran], allowedTools: ['search'] }
  const files = { id: 'files', command: process.execPath, enabled: false, workspaces: [workspaceId] }
  const others = { id: 'others', command: 'touch', workspaces: [randomUUID()] }
  declare(notes, files, others)
  await stdoutOf(wb(servers('add', 'tools', unreachableUrl)))
  const listed = (await stdoutOf(wb(servers('list')))).split('\n').map(line => line.split('\t'))
  const from = 'from the configuration'
  expect(listed).toEqual([
    [expect.any(String), 'tools', unreachableUrl, 'all', 'yes'],
    ['notes', 'notes', from, '1', 'yes'],
    ['files', 'files', from, 'all', 'no'],
  ])
  expect(JSON.parse(await stdoutOf(wb(servers('list', '--json'))))).toMatchObject([{ label: 'tools' }])
  expect((await wb(servers('list', '--limit', '2'))).stderr).toBe('  2 of 3\n')
  const checks = async () =>
    (await wb(['doctor'])).stdout.split('\n').filter(line => line.startsWith('mcp\t'))
  expect(await checks()).toEqual([`mcp\tok\t3 servers ${from}: notes, files (disabled), others\t`])
  expect(existsSync(ran)).toBe(false)
  declare({ ...notes, command: 'no-such-program' }, { id: 'gone', command: './gone' })
  expect(await checks()).toEqual([
    'mcp\twarning\tMCP server notes: program no-such-program not found\twb config show',
    'mcp\twarning\tMCP server gone: program ./gone not found\twb config show',
  ])
  declare()
  expect(await checks()).toEqual([])
})
