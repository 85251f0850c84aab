import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

const bin = join(import.meta.dirname, '../bin/run.js')

/** A `wb serve` of the built tree on a free port. */
export interface Server {
  readonly url: string
  readonly pid: number
  readonly dataDir: string
  stop(): Promise<void>
}

export function temporaryFolder(): string {
  return mkdtempSync(join(tmpdir(), 'workbase-bench-'))
}

/** Arguments and environment with which a command sees nothing but its data directory. */
export function wb(dataDir: string, ...args: string[]) {
  const environment = {
    ...process.env,
    WB_DATA_DIR: dataDir,
    XDG_CONFIG_HOME: join(dataDir, 'config'),
    CI: 'true',
  }
  return { command: process.execPath, args: [bin, ...args], env: environment }
}

export async function startServer(dataDir = temporaryFolder()): Promise<Server> {
  const { command, args, env } = wb(dataDir, 'serve', '--port', '0', '--json', '--data-dir', dataDir)
  const child = spawn(command, args, { env, stdio: ['ignore', 'pipe', 'inherit'] })
  const { url, pid } = await readyLine(child)
  return {
    url,
    pid,
    dataDir,
    async stop() {
      const ended = once(child, 'exit')
      child.kill('SIGTERM')
      await ended
    },
  }
}

async function readyLine(child: ChildProcess): Promise<{ url: string; pid: number }> {
  const lines = createInterface({ input: child.stdout! })
  for await (const line of lines) {
    const event = JSON.parse(line) as { event?: string; url: string; pid: number }
    if (event.event !== 'ready') continue
    lines.removeAllListeners()
    child.stdout!.resume()
    return event
  }
  throw new Error('the server ended before it was ready')
}

/** One JSON call; throws the envelope's words on a failure. */
export async function call<T>(
  server: { url: string },
  method: string,
  path: string,
  body?: unknown,
): Promise<T> {
  const response = await fetch(new URL(path, server.url), {
    method,
    headers: body === undefined ? {} : { 'content-type': 'application/json' },
    body: body === undefined ? undefined : JSON.stringify(body),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text.slice(0, 300)}`)
  return (text ? JSON.parse(text) : undefined) as T
}

export function remove(folder: string): void {
  rmSync(folder, { recursive: true, force: true })
}
