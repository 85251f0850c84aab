import { type ChildProcess, spawn } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join, resolve } from 'node:path'
import { onTestFinished } from 'vitest'
import type { KeyCost } from '../../src/auth/keys/token.ts'
import { type Client, openClient } from '../../src/client/client.ts'
import { FakeIo } from '../harness/fake-io.ts'
import { runInProcess } from '../harness/in-process.ts'
import { lowCost } from '../harness/key-cost.ts'
import { makeWorkspace } from '../harness/resources.ts'
import { preparedVariable } from '../structure/built.ts'

const bin = resolve('bin/run.js')

/** Exit status and output of a finished command. */
export interface CommandResult {
  status: number | null
  stdout: string
  stderr: string
}

interface RunOptions {
  env?: Record<string, string>
  input?: string
  cwd?: string
}

export interface Sandbox {
  /** Separate data directory. */
  dataDir: string
  /** Folder for all other files. */
  home: string
  env: Record<string, string>
  /**
   * Cost of key derivation in this process. Set the production cost before you create keys that spawned processes
   * verify.
   */
  keyCost: KeyCost
  /** Runs a command line in this process. `input` is its stdin. */
  wb(args: string[], options?: RunOptions): Promise<CommandResult>
  /** Like {@link wb}, but in a separate process, for behavior that needs one. */
  spawnWb(args: string[], options?: RunOptions): Promise<CommandResult>
  /** Starts a server in this process, and waits for its ready line. */
  serve(args?: string[], options?: { env?: Record<string, string> }): Promise<TestServer>
  /** Like {@link serve}, but in a separate process, for tests that kill or measure it. */
  spawnServe(args?: string[], options?: { env?: Record<string, string> }): Promise<SpawnedServer>
}

export interface TestServer {
  url: string
  pid: number
  ready: Record<string, unknown>
  ended: Promise<CommandResult>
  /** Sends SIGTERM, and waits for the end. */
  stop(): Promise<CommandResult>
  /** Calls the API with the key of the environment, for setup and for checks that are not under test. */
  call: Client['call']
}

export interface SpawnedServer extends TestServer {
  process: ChildProcess
}

/**
 * A sandbox with a running server. Its commands run in a separate folder and use a separate workspace, set in the
 * environment.
 */
export interface WorkspaceSandbox extends Sandbox {
  workspace: string
  workspaceId: string
  call: Client['call']
}

/** Runs a function at the end of a test or of a group of tests. */
type End = (clear: () => void) => void

/**
 * Creates a data directory, a home folder and an environment for one test. Its servers stop, and its files are
 * removed, when the test ends. With `afterAll`, all tests of a `describe` share the sandbox and must not interfere
 * with each other.
 */
export function createSandbox(end: End = onTestFinished): Sandbox {
  const root = mkdtempSync(join(tmpdir(), 'wb-'))
  const servers: (() => unknown)[] = []
  end(async () => {
    await Promise.all(servers.map(stop => stop()))
    rmSync(root, { recursive: true, force: true })
  })
  const dataDir = join(root, 'data')
  const env = {
    WB_SEMANTIC_SEARCH: 'off',
    PATH: [join(process.env[preparedVariable] ?? '', 'bin'), process.env.PATH].join(delimiter),
    // Hides the default browser of this machine.
    XDG_DATA_DIRS: join(root, 'none'),
    HOME: root,
    XDG_CONFIG_HOME: join(root, 'config'),
    XDG_DATA_HOME: join(root, 'share'),
    WB_DATA_DIR: dataDir,
    NO_COLOR: '1',
  }
  const start = (args: string[], more: Record<string, string> = {}, cwd = root) =>
    spawn(process.execPath, [bin, ...args], { cwd, env: { ...env, ...more } })
  const sandbox: Sandbox = {
    dataDir,
    home: root,
    env,
    keyCost: lowCost,
    async wb(args, { env: more, input, cwd = root } = {}) {
      const io = new FakeIo({ env: { ...env, ...more }, cwd, input, keyCost: sandbox.keyCost })
      const status = await runInProcess(args, io)
      return { status, stdout: io.stdout.text, stderr: io.stderr.text }
    },
    spawnWb(args, { env: more, input, cwd } = {}) {
      const child = start(args, more, cwd)
      child.stdin.end(input)
      return resultOf(child)
    },
    async serve(args = [], { env: more } = {}) {
      const io = new FakeIo({ env: { ...env, ...more }, cwd: root, keyCost: sandbox.keyCost })
      const ended = runInProcess(serveArgs(args), io).then(status => ({
        status,
        stdout: io.stdout.text,
        stderr: io.stderr.text,
      }))
      const stop = () => {
        io.signals.raise('SIGTERM')
        return ended
      }
      servers.push(stop)
      return testServerOf(await firstLine(io.stdout, ended), env, { ended, stop })
    },
    async spawnServe(args = [], { env: more } = {}) {
      const child = start(serveArgs(args), more)
      const ended = resultOf(child)
      servers.push(() => child.kill('SIGKILL'))
      const stop = () => {
        child.kill('SIGTERM')
        return ended
      }
      const ready = await firstLine(child.stdout, ended)
      return { ...testServerOf(ready, env, { ended, stop }), process: child }
    },
  }
  return sandbox
}

/** Returns the arguments of a server on a free port whose output is JSON. */
function serveArgs(args: readonly string[]): string[] {
  return ['serve', ...(args.includes('--port') ? [] : ['--port', '0']), '--json', ...args]
}

function testServerOf(
  ready: Record<string, unknown>,
  env: Sandbox['env'],
  lifetime: Pick<TestServer, 'ended' | 'stop'>,
): TestServer {
  const url = String(ready.url)
  const call: Client['call'] = (route, request, options) =>
    openClient({ baseUrl: url, fetch, headers: authorizationOf(env) }).call(route, request, options)
  return { url, pid: Number(ready.pid), ready, call, ...lifetime }
}

function authorizationOf({ WB_API_KEY }: Sandbox['env']): Record<string, string> {
  return WB_API_KEY ? { authorization: `Bearer ${WB_API_KEY}` } : {}
}

/** Runs a program in a sandbox. Unlike `spawnSync`, it does not block a server in this process. */
export function runProgram(
  { env, home }: Pick<Sandbox, 'env' | 'home'>,
  program: string,
  args: readonly string[],
): Promise<CommandResult> {
  return resultOf(spawn(program, args, { cwd: home, env, stdio: ['ignore', 'pipe', 'pipe'] }))
}

/** Starts a server that requires API keys. Commands of the sandbox use its bootstrap token. */
export function serveWithApiKeys(sandbox: Sandbox): Promise<TestServer> {
  const token = 'bootstrap-token-of-a-test-of-32-bytes-and-more'
  Object.assign(sandbox.env, { WB_CONFIG: join(sandbox.home, 'closed.json'), BOOT: token, WB_API_KEY: token })
  const auth = { mode: 'apiKey', anonymousPolicy: 'reject', bootstrapTokenRef: 'env:BOOT' }
  writeFileSync(sandbox.env.WB_CONFIG!, JSON.stringify({ version: 1, auth }))
  return sandbox.serve()
}

/**
 * Creates a workspace and a folder for one test on a shared server, which is faster than a new server. Tests still
 * share the other files of the sandbox.
 */
export async function addWorkspaceSandbox(
  sandbox: Sandbox,
  { call }: Pick<TestServer, 'call'>,
  fields?: Parameters<typeof makeWorkspace>[1],
): Promise<WorkspaceSandbox> {
  const { name: workspace, workspaceId } = await makeWorkspace({ call }, fields)
  const env = { ...sandbox.env, WB_WORKSPACE: workspace }
  const home = mkdtempSync(join(sandbox.home, 'room-'))
  const inRoom = (options?: RunOptions) => ({ cwd: home, ...options, env: { ...env, ...options?.env } })
  const wb: Sandbox['wb'] = (args, options) => sandbox.wb(args, inRoom(options))
  const spawnWb: Sandbox['spawnWb'] = (args, options) => sandbox.spawnWb(args, inRoom(options))
  return { ...sandbox, home, env, wb, spawnWb, workspace, workspaceId, call }
}

/**
 * Returns a function that creates sandboxes with the same contents. `fill` prepares the first one, and each later
 * one is a copy with the same return value. Paths in the environment are adjusted, paths in files are not. Call it
 * at the top level of a file or in a `describe`. The copy is removed after the run, because test files share their
 * modules.
 */
export function sandboxFactory(fill: (sandbox: Sandbox) => Promise<void>): (end?: End) => Promise<Sandbox>
export function sandboxFactory<T extends object>(
  fill: (sandbox: Sandbox) => Promise<T>,
): (end?: End) => Promise<Sandbox & T>
export function sandboxFactory(
  fill: (sandbox: Sandbox) => Promise<unknown>,
): (end?: End) => Promise<Sandbox> {
  let first: (Pick<Sandbox, 'home' | 'env' | 'keyCost'> & { copy: string; returned: unknown }) | undefined
  return async end => {
    const sandbox = createSandbox(end)
    if (!first) {
      const returned = await fill(sandbox)
      const copy = createPreparedFolder()
      cpSync(sandbox.home, copy, { recursive: true })
      first = { home: sandbox.home, copy, env: { ...sandbox.env }, keyCost: sandbox.keyCost, returned }
    } else cpSync(first.copy, sandbox.home, { recursive: true })
    sandbox.keyCost = first.keyCost
    for (const [name, value] of Object.entries(first.env))
      sandbox.env[name] = value.replaceAll(first.home, sandbox.home)
    return { ...sandbox, ...(first.returned as object | undefined) }
  }
}

/** Creates a folder for prepared files, which is removed after the run. */
export function createPreparedFolder(): string {
  return mkdtempSync(join(process.env[preparedVariable] ?? tmpdir(), 'wb-'))
}

function resultOf(child: ChildProcess): Promise<CommandResult> {
  let stdout = ''
  let stderr = ''
  child.stdout?.setEncoding('utf8').on('data', text => {
    stdout += text
  })
  child.stderr?.setEncoding('utf8').on('data', text => {
    stderr += text
  })
  return new Promise((done, fail) => {
    child.on('error', fail)
    child.on('close', status => done({ status, stdout, stderr }))
  })
}

function firstLine(
  stdout: NodeJS.EventEmitter,
  ended: Promise<CommandResult>,
): Promise<Record<string, unknown>> {
  return new Promise((done, fail) => {
    let text = ''
    stdout.on('data', function read(part) {
      text += part
      const end = text.indexOf('\n')
      if (end < 0) return
      // A server writes a line for each request.
      stdout.off('data', read)
      done(JSON.parse(text.slice(0, end)) as Record<string, unknown>)
    })
    void ended.then(({ stderr }) => fail(new Error(`it ended before it was ready: ${stderr}`)), fail)
  })
}
