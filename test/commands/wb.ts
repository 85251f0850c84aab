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
import { makeWorkspace } from '../harness/place.ts'
import { preparedVariable } from '../structure/built.ts'

const bin = resolve('bin/run.js')

/** What a finished command left. */
export interface Ended {
  status: number | null
  stdout: string
  stderr: string
}

interface RunOptions {
  env?: Record<string, string>
  input?: string
  cwd?: string
}

export interface Place {
  /** Data directory of its own. */
  dataDir: string
  /** Everything else that a command may write. */
  home: string
  env: Record<string, string>
  /** Cost of key derivation in this process. Set the production cost before keys are created that spawned processes verify. */
  keyCost: KeyCost
  /** Runs a command line to its end in this process. `input` is its stdin. */
  wb(args: string[], options?: RunOptions): Promise<Ended>
  /** Like {@link wb}, in a process of its own: for what only a process shows. */
  spawnWb(args: string[], options?: RunOptions): Promise<Ended>
  /** Starts a server in this process, and waits for its ready line. */
  serve(args?: string[], options?: { env?: Record<string, string> }): Promise<Served>
  /** Like {@link serve}, in a process of its own: for tests that kill it or measure it. */
  spawnServe(args?: string[], options?: { env?: Record<string, string> }): Promise<SpawnedServer>
}

export interface Served {
  url: string
  pid: number
  ready: Record<string, unknown>
  ended: Promise<Ended>
  /** Sends SIGTERM, and waits for the end. */
  stop(): Promise<Ended>
  /** Typed calls with the key in the environment of the place: for what a test needs, and does not prove. */
  call: Client['call']
}

export interface SpawnedServer extends Served {
  process: ChildProcess
}

/** A place beside a server with a folder and a workspace of its own, which its commands take from their environment. */
export interface Room extends Place {
  workspace: string
  workspaceId: string
  call: Client['call']
}

/** Runs a function at the end of a test or of a group of tests. */
type End = (clear: () => void) => void

/**
 * A data directory, a home and an environment that no other test shares; its servers end, and it is removed, with the
 * test. `place(afterAll)` in a `describe` is one for all tests of it, which must not mind each other.
 */
export function place(end: End = onTestFinished): Place {
  const root = mkdtempSync(join(tmpdir(), 'wb-'))
  const servers: (() => unknown)[] = []
  end(async () => {
    await Promise.all(servers.map(stop => stop()))
    rmSync(root, { recursive: true, force: true })
  })
  const dataDir = join(root, 'data')
  const env = {
    PATH: [join(process.env[preparedVariable] ?? '', 'bin'), process.env.PATH].join(delimiter),
    // No program of this machine is the usual one for a page.
    XDG_DATA_DIRS: join(root, 'none'),
    HOME: root,
    XDG_CONFIG_HOME: join(root, 'config'),
    XDG_DATA_HOME: join(root, 'share'),
    WB_DATA_DIR: dataDir,
    NO_COLOR: '1',
  }
  const start = (args: string[], more: Record<string, string> = {}, cwd = root) =>
    spawn(process.execPath, [bin, ...args], { cwd, env: { ...env, ...more } })
  const here: Place = {
    dataDir,
    home: root,
    env,
    keyCost: lowCost,
    async wb(args, { env: more, input, cwd = root } = {}) {
      const io = new FakeIo({ env: { ...env, ...more }, cwd, input, keyCost: here.keyCost })
      const status = await runInProcess(args, io)
      return { status, stdout: io.stdout.text, stderr: io.stderr.text }
    },
    spawnWb(args, { env: more, input, cwd } = {}) {
      const child = start(args, more, cwd)
      child.stdin.end(input)
      return ending(child)
    },
    async serve(args = [], { env: more } = {}) {
      const io = new FakeIo({ env: { ...env, ...more }, cwd: root, keyCost: here.keyCost })
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
      return served(await firstLine(io.stdout, ended), env, { ended, stop })
    },
    async spawnServe(args = [], { env: more } = {}) {
      const child = start(serveArgs(args), more)
      const ended = ending(child)
      servers.push(() => child.kill('SIGKILL'))
      const stop = () => {
        child.kill('SIGTERM')
        return ended
      }
      const ready = await firstLine(child.stdout, ended)
      return { ...served(ready, env, { ended, stop }), process: child }
    },
  }
  return here
}

/** Returns the arguments of a server on a free port whose output is JSON. */
function serveArgs(args: readonly string[]): string[] {
  return ['serve', ...(args.includes('--port') ? [] : ['--port', '0']), '--json', ...args]
}

function served(
  ready: Record<string, unknown>,
  env: Place['env'],
  lifetime: Pick<Served, 'ended' | 'stop'>,
): Served {
  const url = String(ready.url)
  const call: Client['call'] = (route, request, options) =>
    openClient({ baseUrl: url, fetch, headers: credential(env) }).call(route, request, options)
  return { url, pid: Number(ready.pid), ready, call, ...lifetime }
}

function credential({ WB_API_KEY }: Place['env']): Record<string, string> {
  return WB_API_KEY ? { authorization: `Bearer ${WB_API_KEY}` } : {}
}

/**
 * Runs a program of this machine at a place. Unlike `spawnSync`, it lets a server of this process answer meanwhile.
 */
export function runProgram(
  { env, home }: Pick<Place, 'env' | 'home'>,
  program: string,
  args: readonly string[],
): Promise<Ended> {
  return ending(spawn(program, args, { cwd: home, env, stdio: ['ignore', 'pipe', 'pipe'] }))
}

/** Serve a runtime that asks for keys; commands of the place hold its bootstrap token. */
export function serveClosed(here: Place): Promise<Served> {
  const token = 'bootstrap-token-of-a-test-of-32-bytes-and-more'
  Object.assign(here.env, { WB_CONFIG: join(here.home, 'closed.json'), BOOT: token, WB_API_KEY: token })
  const auth = { mode: 'apiKey', anonymousPolicy: 'reject', bootstrapTokenRef: 'env:BOOT' }
  writeFileSync(here.env.WB_CONFIG!, JSON.stringify({ version: 1, auth }))
  return here.serve()
}

/** Tests share a server by rooms of their own, which cost no command; what lies in the home of the place they share too. */
export async function roomAt(
  here: Place,
  { call }: Pick<Served, 'call'>,
  fields?: Parameters<typeof makeWorkspace>[1],
): Promise<Room> {
  const { name: workspace, workspaceId } = await makeWorkspace({ call }, fields)
  const env = { ...here.env, WB_WORKSPACE: workspace }
  const home = mkdtempSync(join(here.home, 'room-'))
  const inRoom = (options?: RunOptions) => ({ cwd: home, ...options, env: { ...env, ...options?.env } })
  const wb: Place['wb'] = (args, options) => here.wb(args, inRoom(options))
  const spawnWb: Place['spawnWb'] = (args, options) => here.spawnWb(args, inRoom(options))
  return { ...here, home, env, wb, spawnWb, workspace, workspaceId, call }
}

/**
 * Places that begin alike: what `fill` leaves in the first one, and returns, the next ones have as a copy. Paths below the
 * first one's home are their own in the environment of each, not within files. Called at the top of a file or in a
 * `describe`; the copy goes with the run, as test files share their modules.
 */
export function placesLike(fill: (here: Place) => Promise<void>): (end?: End) => Promise<Place>
export function placesLike<T extends object>(fill: (here: Place) => Promise<T>): () => Promise<Place & T>
export function placesLike(fill: (here: Place) => Promise<unknown>): (end?: End) => Promise<Place> {
  let first: (Pick<Place, 'home' | 'env' | 'keyCost'> & { copy: string; made: unknown }) | undefined
  return async end => {
    const here = place(end)
    if (!first) {
      const made = await fill(here)
      const copy = preparedFolder()
      cpSync(here.home, copy, { recursive: true })
      first = { home: here.home, copy, env: { ...here.env }, keyCost: here.keyCost, made }
    } else cpSync(first.copy, here.home, { recursive: true })
    here.keyCost = first.keyCost
    for (const [name, value] of Object.entries(first.env))
      here.env[name] = value.replaceAll(first.home, here.home)
    return { ...here, ...(first.made as object | undefined) }
  }
}

/** A folder of one's own for what is prepared once, gone with the run. */
export function preparedFolder(): string {
  return mkdtempSync(join(process.env[preparedVariable] ?? tmpdir(), 'wb-'))
}

function ending(child: ChildProcess): Promise<Ended> {
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

function firstLine(stdout: NodeJS.EventEmitter, ended: Promise<Ended>): Promise<Record<string, unknown>> {
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
