import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { chunkingPresets } from '../src/contract/services/presets.ts'
import { fitSampleMax } from '../src/models/lsa.ts'

const bin = join(import.meta.dirname, '../bin/run.js')

/** A running `wb serve` of the built tree, on a free port. */
export interface Server {
  readonly url: string
  readonly pid: number
  readonly dataDir: string
  stop(): Promise<void>
}

export function temporaryFolder(): string {
  return mkdtempSync(join(tmpdir(), 'workbase-bench-'))
}

/** Returns a command line and environment that isolate the command from the user's configuration. */
export function wb(dataDir: string, ...args: string[]) {
  const environment = {
    ...process.env,
    WB_DATA_DIR: dataDir,
    XDG_CONFIG_HOME: join(dataDir, 'config'),
    // Computing the vectors of the sentence model would disturb the other measurements.
    WB_SEMANTIC_SEARCH: 'off',
    CI: 'true',
  }
  return { command: process.execPath, args: [bin, ...args], env: environment }
}

/** Configuration with a rate limit that no benchmark reaches. */
export const unlimited = { runtime: { rateLimit: { capacity: 1_000_000 } } }

/** Configuration of a server that differs from the default. */
export interface Setting {
  /** Contents of `workbase.yaml`, without its version. */
  readonly config?: object
  readonly env?: Readonly<Record<string, string>>
  /** Options of Node.js. */
  readonly nodeArgs?: readonly string[]
}

export async function startServer(dataDir = temporaryFolder(), setting: Setting = {}): Promise<Server> {
  const named = setting.config ? ['--config', written(dataDir, setting.config)] : []
  const line = ['serve', '--port', '0', '--json', '--data-dir', dataDir, ...named]
  const { command, args, env } = wb(dataDir, ...line)
  const child = spawn(command, [...(setting.nodeArgs ?? []), ...args], {
    env: { ...env, ...setting.env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
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

/** Writes a configuration file, and returns its path. Its name is not one that Workbase searches for. */
function written(dataDir: string, config: object): string {
  const path = join(dataDir, 'bench.yaml')
  writeFileSync(path, JSON.stringify({ version: 1, ...config }))
  return path
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

/** Sends a JSON request with the headers of the server. Throws an error with the response if it fails. */
export async function call<T>(
  server: { url: string; headers?: Readonly<Record<string, string>> },
  method: string,
  path: string,
  body?: unknown,
): Promise<T> {
  const response = await fetch(new URL(path, server.url), {
    method,
    headers: { ...server.headers, ...(body !== undefined && { 'content-type': 'application/json' }) },
    body: body === undefined ? undefined : JSON.stringify(body),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text.slice(0, 300)}`)
  return (text ? JSON.parse(text) : undefined) as T
}

/**
 * Creates a knowledge base, and returns its path.
 *
 * @param dimension  dimension of the vectors of its records; absent for the built-in embedder
 */
export async function createBase(
  server: Server,
  { dimension, chunker }: { dimension?: number; chunker?: string | undefined } = {},
): Promise<string> {
  const { workspaceId } = await call<{ workspaceId: string }>(server, 'POST', '/api/v1/workspaces', {
    name: 'bench',
  })
  const workspace = `/api/v1/workspaces/${workspaceId}`
  const service = dimension !== undefined && {
    name: 'bench',
    provider: 'mock',
    modelName: 'mock-embedder',
    embeddingDimension: dimension,
  }
  const embedding =
    service &&
    (await call<{ embeddingServiceId: string }>(server, 'POST', `${workspace}/embedding-services`, service))
  const preset = chunker && chunkingPresets[chunker as keyof typeof chunkingPresets]
  const chunking =
    preset &&
    (await call<{ chunkingServiceId: string }>(server, 'POST', `${workspace}/chunking-services`, preset))
  const { knowledgeBaseId } = await call<{ knowledgeBaseId: string }>(
    server,
    'POST',
    `${workspace}/knowledge-bases`,
    {
      name: 'bench',
      ...(embedding && { embeddingServiceId: embedding.embeddingServiceId }),
      ...(chunking && { chunkingServiceId: chunking.chunkingServiceId }),
    },
  )
  return `${workspace}/knowledge-bases/${knowledgeBaseId}`
}

/** Share of the chunks of a large knowledge base that can be added without a new fit. */
const unfittedShareMax = 0.1

/** Waits until the built-in embedder is fitted to the chunks. Throws an error after some seconds. */
export async function untilFitted(server: Server, base: string, seconds: number): Promise<void> {
  const end = performance.now() + 1_000 * seconds
  while (performance.now() < end) {
    const { embedder, sentences } = await call<{
      embedder: { state: string; fittedChunks: number; chunks: number }
      sentences?: { state: string }
    }>(server, 'GET', base)
    const { state, fittedChunks, chunks } = embedder
    const isFitted =
      chunks <= fitSampleMax ? fittedChunks === chunks : fittedChunks >= chunks * (1 - unfittedShareMax)
    if (state === 'ready' && isFitted && sentences?.state !== 'embedding') return
    await new Promise(resolve => setTimeout(resolve, 100))
  }
  throw new Error(`the embedder did not become ready within ${seconds} seconds`)
}

export function remove(folder: string): void {
  rmSync(folder, { recursive: true, force: true })
}
