import { readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test, vi } from 'vitest'
import { anonymousContext } from '../../../src/access/subject.ts'
import type { Tool } from '../../../src/agents/tools/tool.ts'
import { isProcessRunning } from '../../../src/base/is-process-running.ts'
import { agents } from '../../../src/contract/agents.ts'
import { isAlive } from '../../harness/alive.ts'
import { type Options, scratchDir, TestClock, until } from '../../harness/runtime.ts'
import { keyWith, toolStage } from '../../harness/tools.ts'

const program = resolve('test/fixtures/mcp/stdio-server.mjs')
const never = new AbortController().signal

interface Declared {
  readonly args?: readonly string[]
  /** Another program than the fixture; has all of the arguments. */
  readonly command?: string
  readonly [field: string]: unknown
}

/** A configuration that declares the server `local`. */
function declaring({ args = [], command, ...fields }: Declared = {}) {
  const own = { command: process.execPath, args: [program, ...args] }
  const server = { id: 'local', ...(command ? { command, args } : own), ...fields }
  return { mcp: { stdioServers: [server] } }
}

/** A runtime whose configuration declares a server, and what its tools are called with. */
async function declared(fields: Declared = {}, options: Options = {}) {
  const stage = await toolStage({ config: declaring(fields), ...options })
  const call = (name: string, args: object = {}) => stage.run(`mcp:local:${name}`, args)
  const pid = async () => Number((await call('pid')).content)
  const offered = async (workspaceId = stage.workspaceId) => {
    const { items } = await stage.wb.call(agents.tools, { params: { workspaceId } })
    return items.filter(({ source }) => source === 'mcp')
  }
  return { ...stage, call, pid, offered }
}

const gone = (pid: number) => until(() => !isProcessRunning(pid))

test('the tools of a declared server are offered, and an agent can be given them', async () => {
  const { wb, workspaceId, offered } = await declared({ allowedTools: ['echo', 'pid', 'absent'] })
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

test('a call gets the arguments of the model, by one process for all, and is audited', async () => {
  const { call, pid, audited, toolsOf } = await declared()
  const words = '$(touch x); `id` "\n{"jsonrpc":"2.0"}'
  expect(await call('echo', { words })).toEqual({ content: JSON.stringify({ words }), outcome: 'success' })
  const pids = await Promise.all([pid(), pid()])
  expect([...pids, await pid()]).toEqual(Array(3).fill(pids[0]))
  expect(await call('refuse')).toMatchObject({ outcome: 'failure', content: 'Error: no such city' })
  const [tool] = await toolsOf(['mcp:local:echo'])
  expect(tool).toMatchObject({ isExternal: true, readsUntrusted: true } satisfies Partial<Tool>)
  await until(async () => (await audited()).length === 5)
  expect((await audited()).at(-1)).toMatchObject({
    outcome: 'success',
    details: { toolName: 'mcp:local:echo', source: 'mcp' },
  })
})

test('a workspace that is not given the server has none of its tools, and does not start it', async () => {
  const dataDir = `${scratchDir()}/data`
  const first = await toolStage({ dataDir })
  await first.wb.close()
  const starts = join(scratchDir(), 'starts')
  writeFileSync(starts, '')
  const fields = { workspaces: [first.workspaceId], env: { STARTS: starts } }
  const { offered, call, toolbox, workspaceId, wb } = await declared(fields, { dataDir })
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

test('a call takes tools:invoke or write; a server that is switched off is not offered', async () => {
  const { run } = await declared()
  const outcomeFor = async (...scopes: Parameters<typeof keyWith>) =>
    (await run('mcp:local:echo', {}, { auth: keyWith(...scopes) })).outcome
  expect(await outcomeFor('read', 'tools:invoke')).toBe('success')
  expect(await outcomeFor('read')).toBe('denied')
  expect(await (await declared({ enabled: false })).offered()).toEqual([])
})

test('the program has the variables that it is given and where things are, and no other of the runtime', async () => {
  vi.stubEnv('RUNTIME_CANARY', 'canary-of-the-process')
  vi.stubEnv('SHELL', '/bin/canary')
  vi.stubEnv('USER', 'canary')
  const environment = { CHOSEN_SECRET: 'secret-of-the-server', OTHER_SECRET: 'canary-of-the-runtime' }
  const fields = { env: { PLAIN: 'text' }, secretEnv: { TOKEN: 'env:CHOSEN_SECRET' } }
  const { call, wb } = await declared(fields, { environment })
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

test('a program that dies fails its call, and the next call has a new one', async () => {
  const { call, pid } = await declared()
  const first = await pid()
  expect(await call('crash')).toMatchObject({ outcome: 'failure', content: 'Error: The server has exited.' })
  const second = await pid()
  expect([second !== first, isProcessRunning(first), isProcessRunning(second)]).toEqual([true, false, true])
})

test('a call that is never answered ends with its time, and its program with it', async () => {
  const clock = new TestClock()
  const { call, pid } = await declared({}, { clock })
  const first = await pid()
  const hanging = call('hang')
  expect((await call('echo')).outcome).toBe('success')
  clock.advance(30_000)
  expect(await hanging).toMatchObject({ outcome: 'failure', content: expect.stringMatching(/30 s/) })
  await gone(first)
  expect(await pid()).not.toBe(first)
})

test('a program that says or asks too much is ended', async () => {
  const { call, pid } = await declared()
  const first = await pid()
  expect(await call('flood')).toMatchObject({ content: 'Error: The server sent more than 2000000 bytes.' })
  await gone(first)
  const second = await pid()
  expect(await call('pester')).toMatchObject({ content: 'Error: The server sent more than 64 requests.' })
  await gone(second)
})

test('a program that nobody calls for five minutes is ended', async () => {
  const clock = new TestClock()
  const { pid } = await declared({}, { clock })
  const first = await pid()
  clock.advance(299_000)
  expect(await pid()).toBe(first)
  clock.advance(299_000)
  expect(isProcessRunning(first)).toBe(true)
  clock.advance(2_000)
  await gone(first)
  expect(await pid()).not.toBe(first)
})

test('closing the runtime leaves no process behind, whatever the program is doing', async () => {
  const { wb, pid, call } = await declared()
  const busy = await pid()
  const hanging = call('hang')
  await wb.close()
  expect([isProcessRunning(busy), (await hanging).outcome]).toEqual([false, 'failure'])
  const stubborn = await declared({ args: ['stubborn'] })
  const held = await stubborn.pid()
  await stubborn.wb.close()
  expect(isProcessRunning(held)).toBe(false)
})

test.runIf(process.platform !== 'win32')(
  'closing the runtime also ends what the program has started, be the program a wrapper',
  async () => {
    const helper = join(scratchDir(), 'helper')
    const wrapped = (mode: string) => {
      const node = `"${process.execPath}" "${program}" ${mode}; true`
      return declared({
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

test('closing while the program starts leaves none behind either', async () => {
  const starts = join(scratchDir(), 'starts')
  writeFileSync(starts, '')
  const { wb, toolsOf } = await declared({ env: { STARTS: starts } })
  const listing = toolsOf(['mcp:local:echo'])
  const started = () => readFileSync(starts, 'utf8').split('\n').filter(Boolean).map(Number)
  await until(() => started().length === 1)
  await wb.close()
  expect([await listing, isProcessRunning(started()[0]!)]).toEqual([[], false])
})

test.each([
  ['a command that is not there', { command: '/no/such/program', args: ['--token', 'canary'] }, 'ENOENT'],
  ['a secret that leads to nothing', { secretEnv: { TOKEN: 'env:ABSENT' } }, 'env:ABSENT is not set'],
  ['no MCP server', { command: process.execPath, args: ['-e', 'process.exit(1)'] }, 'Connection closed'],
])(
  '%s offers nothing, is in the log without its arguments, and is left alone for a while',
  async (_, fields, reason) => {
    const clock = new TestClock()
    const config = { mcp: { stdioServers: [{ ...declaring().mcp.stdioServers[0], ...fields }] } }
    const { offered, wb } = await declared({}, { clock, config })
    const failedStarts = () =>
      wb.complaints.filter(({ message }) => message === 'a tool server did not start')
    expect([await offered(), await offered()]).toEqual([[], []])
    expect(failedStarts()).toEqual([
      expect.objectContaining({ facts: { server: 'local', reason: expect.stringContaining(reason) } }),
    ])
    expect(JSON.stringify(wb.complaints)).not.toContain('canary')
    clock.advance(10_000)
    await offered()
    expect(failedStarts()).toHaveLength(2)
  },
)
