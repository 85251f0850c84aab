import { execFileSync, spawn } from 'node:child_process'
import { closeSync, constants, existsSync, mkdirSync, openSync, readdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { openInProcessRuntime } from '../../src/cli/connection/resolve-runtime.ts'
import { readProfile } from '../../src/cli/settings/profile.ts'
import { createSandbox } from '../commands/sandbox.ts'
import { FakeIo } from '../harness/fake-io.ts'

const isLinux = process.platform === 'linux'
const timeLimitMs = 20_000

/** Starts a command and kills it after a time limit, so that a command that hangs fails the test. */
function started(here: ReturnType<typeof createSandbox>, args: string[]) {
  const child = spawn(process.execPath, [resolve('bin/run.js'), ...args], {
    cwd: here.home,
    env: here.env,
    stdio: ['ignore', 'ignore', 'pipe'],
    timeout: timeLimitMs,
    killSignal: 'SIGKILL',
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', text => {
    stderr += text
  })
  const ended = new Promise<{ status: number | null; signal: string | null; stderr: string }>(done =>
    child.on('close', (status, signal) => done({ status, signal, stderr })),
  )
  return { child, ended }
}

function pipeAt(path: string): string {
  execFileSync('mkfifo', [path])
  return path
}

describe.runIf(isLinux)('a data directory that cannot be created', () => {
  test.each([
    ['kb create handbook', '/proc/wb-nowhere'],
    ['serve --port 0', '/proc/wb-nowhere'],
    ['api POST /api/v1/workspaces', '/proc/self/wb-nowhere/below'],
  ])('ends `wb %s --data-dir %s` with a one-line error', async (line, folder) => {
    const { ended } = started(createSandbox(), [...line.split(' '), '--data-dir', folder])
    const { status, stderr } = await ended
    expect(status, stderr).toBe(6)
    const missing = folder.replace(/\/below$/, '')
    expect(stderr.split('\n')[0]).toBe(
      `  ✗ The folder ${missing} cannot be created (ENOENT) (control_plane_unavailable)`,
    )
  })

  test('does not prevent a command that only reads', async () => {
    const { ended } = started(createSandbox(), ['kb', 'list', '--data-dir', '/proc/wb-nowhere'])
    const { status, stderr } = await ended
    expect(status, stderr).toBe(4)
    expect(stderr).toMatch(/^ {2}✗ There is no workspace yet/)
  })

  test('also ends `wb profiles add` if it is the settings folder', async () => {
    const here = createSandbox()
    here.env.XDG_CONFIG_HOME = '/proc/wb-nowhere'
    const { ended } = started(here, ['profiles', 'add', 'x'])
    const { status, stderr } = await ended
    expect(status, stderr).toBe(2)
    expect(stderr).toContain('/proc/wb-nowhere/workbase/settings.lock cannot be opened (ENOENT)')
  })
})

describe.runIf(isLinux)('a pipe without a writer', () => {
  test('as --data @PIPE: SIGTERM ends the command', async () => {
    const here = createSandbox()
    const pipe = pipeAt(join(here.home, 'pipe'))
    const { child, ended } = started(here, ['api', 'POST', '/x', '--data', `@${pipe}`])
    const end = await vi.waitUntil(() => otherEnd(pipe), { timeout: timeLimitMs })
    onTestFinished(() => closeSync(end))
    child.kill('SIGTERM')
    expect(await ended).toMatchObject({ signal: 'SIGTERM' })
  })

  test('as --config ends the command immediately with a one-line error', async () => {
    const here = createSandbox()
    const { ended } = started(here, ['kb', 'list', '--config', pipeAt(join(here.home, 'pipe'))])
    const { status, stderr } = await ended
    expect(status, stderr).toBe(1)
    expect(stderr).toContain('not a regular file')
  })

  test('as the store ends the command immediately with a one-line error', async () => {
    const here = createSandbox()
    mkdirSync(here.dataDir)
    pipeAt(join(here.dataDir, 'workbase.db'))
    const { ended } = started(here, ['kb', 'list'])
    const { status, stderr } = await ended
    expect(status, stderr).toBe(6)
    expect(stderr).toContain('workbase.db is not a regular file')
  })

  /** Opens the other end of a pipe; returns undefined until a process reads from it. */
  function otherEnd(pipe: string): number | undefined {
    try {
      return openSync(pipe, constants.O_WRONLY | constants.O_NONBLOCK)
    } catch {
      return undefined
    }
  }
})

describe('commands that only read do not create the data directory', () => {
  test.each([
    'kb list',
    'workspaces list',
    'documents list',
    'search hello',
    'status',
    'whoami',
    'auth status',
    'services list',
    'agents list',
    'jobs list',
    'keys list',
    'conversations list',
    'audit list --as-operator --all',
    'api GET /version',
    'doctor',
  ])('wb %s', async line => {
    const here = createSandbox()
    const { status, stderr } = await here.wb(line.split(' '))
    expect([0, 4], stderr).toContain(status)
    expect(existsSync(here.dataDir)).toBe(false)
  })

  test('a running session without a store sees one that another command creates', async () => {
    const here = createSandbox()
    const io = new FakeIo({ env: here.env, cwd: here.home })
    const session = openInProcessRuntime(readProfile({ dataDir: here.dataDir }, io), io, {
      note: () => {},
      logSettings: { level: 'silent', stream: process.stderr },
    })
    const { fetch, baseUrl, close } = await session
    onTestFinished(close)
    const names = async () => {
      const answer = await fetch(`${baseUrl}/api/v1/workspaces`, { method: 'GET', headers: {} })
      return (JSON.parse(await answer.text()) as { items: { name: string }[] }).items.map(({ name }) => name)
    }
    expect(await names()).toEqual([])
    expect((await here.wb(['workspaces', 'create', 'late'])).status).toBe(0)
    expect(await names()).toEqual(['late'])
  })

  test('the first command that writes creates it', async () => {
    const here = createSandbox()
    expect((await here.wb(['kb', 'create', 'handbook'])).status).toBe(0)
    expect(readdirSync(here.dataDir)).toContain('workbase.db')
    expect((await here.wb(['kb', 'list'])).stdout).toContain('handbook')
  })
})
