import { readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test, vi } from 'vitest'
import { anonymousContext } from '../../../src/access/subject.ts'
import type { Tool } from '../../../src/agents/tools/tool.ts'
import { isProcessRunning } from '../../../src/base/is-process-running.ts'
import { agents } from '../../../src/contract/agents.ts'
import { isAlive } from '../../harness/is-alive.ts'
import { scratchDir, TestClock, type TestRuntimeOptions, waitUntil } from '../../harness/runtime.ts'
import { keyWith, setUpTools } from '../../harness/tools.ts'

const program = resolve('test/fixtures/mcp/stdio-server.mjs')
const never = new AbortController().signal

interface ServerFields {
  readonly args?: readonly string[]
  /** A command instead of the fixture; gets no other arguments than `args`. */
  readonly command?: string
  readonly [field: string]: unknown
}

/** Returns a configuration that declares the server `local`. */
function configWithServer({ args = [], command, ...fields }: ServerFields = {}) {
  const own = { command: process.execPath, args: [program, ...args] }
  const server = { id: 'local', ...(command ? { command, args } : own), ...fields }
  return { mcp: { stdioServers: [server] } }
}

/** Opens a runtime whose configuration declares a server, with functions to list and call its tools. */
async function openWithServer(fields: ServerFields = {}, options: TestRuntimeOptions = {}) {
  const stage = await setUpTools({ config: configWithServer(fields), ...options })
  const call = (name: string, args: object = {}) => stage.run(`mcp:local:${name}`, args)
  const pid = async () => Number((await call('pid')).content)
  const offered = async (workspaceId = stage.workspaceId) => {
    const { items } = await stage.wb.call(agents.tools, { params: { workspaceId } })
    return items.filter(({ source }) => source === 'mcp')
  }
  return { ...stage, call, pid, offered }
}

const untilExited = (pid: number) => waitUntil(() => !isProcessRunning(pid))

test('the tools of a declared server are available, and an agent can use them', async () => {
  const { wb, workspaceId, offered } = await openWithServer({ allowedTools: ['echo', 'pid', 'absent'] })
  expect(await offered()).toEqual([
    {
      id: 'mcp:local:echo',
      description: 'does echo',
      source: 'mcp',
      inputSchema: expect.objectContaining({ type: 'object' }),
      serverLabel: 'local',
    },
    expect.objectContaining({ id: 'mcp:local:pid' }),
  ])
  const make = (toolId: string) =>
    wb.call(agents.create, { params: { workspaceId }, body: { name: toolId, toolIds: [toolId] } })
  expect((await make('mcp:local:echo')).toolIds).toEqual(['mcp:local:echo'])
  await expect(make('mcp:local:hang')).rejects.toMatchObject({ code: 'agent_tool_unresolved' })
})

test('a call gets the arguments of the model, uses one shared process, and is audited', async () => {
  const { call, pid, auditRecords, toolsOf } = await openWithServer()
  const words = '$(touch x); `id` "\n{"jsonrpc":"2.0"}'
  expect(await call('echo', { words })).toEqual({ content: JSON.stringify({ words }), outcome: 'success' })
  const pids = await Promise.all([pid(), pid()])
  expect([...pids, await pid()]).toEqual(Array(3).fill(pids[0]))
  expect(await call('refuse')).toMatchObject({ outcome: 'failure', content: 'Error: no such city' })
  const [tool] = await toolsOf(['mcp:local:echo'])
  expect(tool).toMatchObject({ isExternal: true, readsUntrusted: true } satisfies Partial<Tool>)
  await waitUntil(async () => (await auditRecords()).length === 5)
  expect((await auditRecords()).at(-1)).toMatchObject({
    outcome: 'success',
    details: { toolName: 'mcp:local:echo', source: 'mcp' },
  })
})

test('a workspace without access to the server has none of its tools, and does not start it', async () => {
  const dataDir = `${scratchDir()}/data`
  const first = await setUpTools({ dataDir })
  await first.wb.close()
  const starts = join(scratchDir(), 'starts')
  writeFileSync(starts, '')
  const fields = { workspaces: [first.workspaceId], env: { STARTS: starts } }
  const { offered, call, toolbox, workspaceId, wb } = await openWithServer(fields, { dataDir })
  const toolIds = ['mcp:local:echo']
  expect(await offered()).toEqual([])
  expect((await call('echo')).outcome).toBe('denied')
  const body = { name: 'agent', toolIds }
  await expect(wb.call(agents.create, { params: { workspaceId }, body })).rejects.toMatchObject({
    code: 'agent_tool_unresolved',
  })
  expect(readFileSync(starts, 'utf8')).toBe('')
  const agent = { workspaceId: first.workspaceId, toolIds }
  const { tools } = await toolbox.forAgent(agent, anonymousContext('disabled'), never)
  expect(tools.map(({ id }) => id)).toEqual(toolIds)
  expect(await offered(first.workspaceId)).not.toEqual([])
})

test('a call requires tools:invoke or write, and the tools of a disabled server are not available', async () => {
  const { run } = await openWithServer()
  const outcomeFor = async (...scopes: Parameters<typeof keyWith>) =>
    (await run('mcp:local:echo', {}, { auth: keyWith(...scopes) })).outcome
  expect(await outcomeFor('read', 'tools:invoke')).toBe('success')
  expect(await outcomeFor('read')).toBe('denied')
  expect(await (await openWithServer({ enabled: false })).offered()).toEqual([])
})

test('the program gets its declared variables and paths, and no other variables of the runtime', async () => {
  vi.stubEnv('RUNTIME_CANARY', 'canary-of-the-process')
  vi.stubEnv('SHELL', '/bin/canary')
  vi.stubEnv('USER', 'canary')
  const environment = { CHOSEN_SECRET: 'secret-of-the-server', OTHER_SECRET: 'canary-of-the-runtime' }
  const fields = { env: { PLAIN: 'text' }, secretEnv: { TOKEN: 'env:CHOSEN_SECRET' } }
  const { call, wb } = await openWithServer(fields, { environment })
  const { content } = await call('environment')
  // Node adds the last one on macOS.
  const { __CF_USER_TEXT_ENCODING: _, ...variables } = JSON.parse(content) as Record<string, string>
  expect(variables).toEqual({
    PATH: process.env.PATH,
    HOME: process.env.HOME,
    PLAIN: 'text',
    TOKEN: '[redacted]',
  })
  expect(realpathSync((await call('folder')).content)).toBe(realpathSync(wb.dataDir))
})

test('a program that exits fails its call, and the next call starts a new one', async () => {
  const { call, pid } = await openWithServer()
  const first = await pid()
  expect(await call('crash')).toMatchObject({ outcome: 'failure', content: 'Error: The server has exited.' })
  const second = await pid()
  expect([second !== first, isProcessRunning(first), isProcessRunning(second)]).toEqual([true, false, true])
})

test('a call without an answer times out, and its program is stopped', async () => {
  const clock = new TestClock()
  const { call, pid } = await openWithServer({}, { clock })
  const first = await pid()
  const hanging = call('hang')
  expect((await call('echo')).outcome).toBe('success')
  clock.advance(30_000)
  expect(await hanging).toMatchObject({ outcome: 'failure', content: expect.stringMatching(/30 s/) })
  await untilExited(first)
  expect(await pid()).not.toBe(first)
})

test('a program that sends too much is stopped', async () => {
  const { call, pid } = await openWithServer()
  const first = await pid()
  expect(await call('flood')).toMatchObject({ content: 'Error: The server sent more than 2000000 bytes.' })
  await untilExited(first)
  const second = await pid()
  expect(await call('pester')).toMatchObject({ content: 'Error: The server sent more than 64 requests.' })
  await untilExited(second)
})

test('a program without calls for five minutes is stopped', async () => {
  const clock = new TestClock()
  const { pid } = await openWithServer({}, { clock })
  const first = await pid()
  clock.advance(299_000)
  expect(await pid()).toBe(first)
  clock.advance(299_000)
  expect(isProcessRunning(first)).toBe(true)
  clock.advance(2_000)
  await untilExited(first)
  expect(await pid()).not.toBe(first)
})

test('closing the runtime leaves no process behind, whatever state the program is in', async () => {
  const { wb, pid, call } = await openWithServer()
  const busy = await pid()
  const hanging = call('hang')
  await wb.close()
  expect([isProcessRunning(busy), (await hanging).outcome]).toEqual([false, 'failure'])
  const stubborn = await openWithServer({ args: ['stubborn'] })
  const held = await stubborn.pid()
  await stubborn.wb.close()
  expect(isProcessRunning(held)).toBe(false)
})

test.runIf(process.platform !== 'win32')(
  'closing the runtime also stops the child processes of a wrapper program',
  async () => {
    const helper = join(scratchDir(), 'helper')
    const wrapped = (mode: string) => {
      const node = `"${process.execPath}" "${program}" ${mode}; true`
      return openWithServer({
        command: 'sh',
        args: ['-c', `sleep 600 >&- 2>&- & echo $! >"$1"; ${node}`, 'sh', helper + mode],
      })
    }
    const ended = async (mode: string) => {
      const { wb, pid } = await wrapped(mode)
      const started = [await pid(), Number(readFileSync(helper + mode, 'utf8'))]
      expect(started.map(isAlive)).toEqual([true, true])
      await wb.close()
      return started.map(isAlive)
    }
    expect(await Promise.all([ended(''), ended('stubborn')])).toEqual([
      [false, false],
      [false, false],
    ])
  },
)

test('closing the runtime during the start of a program leaves no process behind', async () => {
  const starts = join(scratchDir(), 'starts')
  writeFileSync(starts, '')
  const { wb, toolsOf } = await openWithServer({ env: { STARTS: starts } })
  const listing = toolsOf(['mcp:local:echo'])
  const started = () => readFileSync(starts, 'utf8').split('\n').filter(Boolean).map(Number)
  await waitUntil(() => started().length === 1)
  await wb.close()
  expect([await listing, isProcessRunning(started()[0]!)]).toEqual([[], false])
})

test.each([
  ['a missing command', { command: '/no/such/program', args: ['--token', 'canary'] }, 'ENOENT'],
  ['a reference to a missing secret', { secretEnv: { TOKEN: 'env:ABSENT' } }, 'env:ABSENT is not set'],
  [
    'a program that is not an MCP server',
    { command: process.execPath, args: ['-e', 'process.exit(1)'] },
    'Connection closed',
  ],
])(
  '%s provides no tools, is logged without its arguments, and is not retried for a while',
  async (_, fields, reason) => {
    const clock = new TestClock()
    const config = { mcp: { stdioServers: [{ ...configWithServer().mcp.stdioServers[0], ...fields }] } }
    const { offered, wb } = await openWithServer({}, { clock, config })
    const failedStarts = () =>
      wb.loggedProblems.filter(({ message }) => message === 'a tool server did not start')
    expect([await offered(), await offered()]).toEqual([[], []])
    expect(failedStarts()).toEqual([
      expect.objectContaining({ facts: { server: 'local', reason: expect.stringContaining(reason) } }),
    ])
    expect(JSON.stringify(wb.loggedProblems)).not.toContain('canary')
    clock.advance(10_000)
    await offered()
    expect(failedStarts()).toHaveLength(2)
  },
)
