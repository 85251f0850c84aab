import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { Pool } from 'undici'
import { afterAll, beforeAll, expect, vi } from 'vitest'
import { createSandbox, type Sandbox, type SpawnedServer, type TestServer } from '../commands/sandbox.ts'
import { exactly } from './exactly.ts'
import { failure } from './shapes.ts'

export type Row = Record<string, unknown>

/** An HTTP request; `json` is serialized, and `raw` is sent unchanged. */
export interface Sent {
  readonly json?: unknown
  readonly raw?: string | Buffer | Readable
  readonly headers?: Record<string, string>
}

export interface Reply {
  readonly status: number
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly text: string
  /** Parsed body of a JSON response, otherwise undefined. */
  readonly body: unknown
}

/** Path of the installed command line. */
export const executable = fileURLToPath(new URL('../../bin/run.js', import.meta.url))
const testTimeoutMs = 60_000

type ServeOptions = { env?: Record<string, string>; args?: string[] }

/** A server on a free port with its own data directory. */
export interface Serving {
  readonly url: string
  readonly dataDir: string
  /** Sends SIGTERM, waits for the exit, deletes the data directory, and returns the exit status. */
  stop(): Promise<number | null>
}

/** Starts `wb serve` in this process. */
export function serve(options?: ServeOptions): Promise<Serving> {
  return serveAt((here, args, more) => here.serve(args, more), options)
}

/** Starts `wb serve` in a child process, for tests that kill it, measure it or preload code. */
export function spawnServe(options?: ServeOptions): Promise<Serving & Pick<SpawnedServer, 'process'>> {
  return serveAt((here, args, more) => here.spawnServe(args, more), options)
}

async function serveAt<T extends TestServer>(
  start: (here: Sandbox, args: string[], options: { env?: Record<string, string> }) => Promise<T>,
  { env, args = [] }: ServeOptions = {},
): Promise<Omit<T, 'stop'> & Serving> {
  let clear: (() => unknown) | undefined
  const here = createSandbox(remove => {
    clear = remove
  })
  const server = await start(here, args, { env })
  const stop = async () => {
    const { status } = await server.stop()
    await clear?.()
    return status
  }
  return { ...server, dataDir: here.dataDir, stop }
}

/** An HTTP client for one runtime that compares responses with the API contract. */
export class Wire {
  #pool: Pool | undefined

  get pool(): Pool {
    if (!this.#pool) throw new Error('no server is running')
    return this.#pool
  }

  open(url: string): void {
    this.#pool = new Pool(url, { connections: 32, headersTimeout: testTimeoutMs, bodyTimeout: testTimeoutMs })
  }

  async close(): Promise<void> {
    await this.#pool?.destroy()
  }

  /** Sends a request. @param line  method and path, `GET /healthz`; the path is sent unchanged */
  async send(line: string, sent: Sent = {}): Promise<Reply> {
    const [method, path] = split(line)
    const json = 'json' in sent
    const answer = await this.pool.request({
      method: method as 'GET',
      path,
      headers: { ...(json ? { 'content-type': 'application/json' } : {}), ...sent.headers },
      body: json ? JSON.stringify(sent.json) : (sent.raw ?? null),
    })
    const text = await answer.body.text()
    const headers = Object.fromEntries(
      Object.entries(answer.headers).map(([name, value]) => [
        name,
        value === undefined ? value : String(value),
      ]),
    )
    const isJson = headers['content-type']?.startsWith('application/json') === true && text !== ''
    return { status: answer.statusCode, headers, text, body: isJson ? JSON.parse(text) : undefined }
  }

  /** Sends a request that succeeds, and checks status, media type and the exact body. */
  async exchange(line: string, json: unknown, status: number, expected: unknown): Promise<Row> {
    const reply = await this.send(line, json === undefined ? {} : { json })
    const about = `${line} → ${reply.status} ${reply.text.slice(0, 300)}`
    expect(reply.status, about).toBe(status)
    expectIdentified(reply)
    if (expected === undefined) expect(reply.text, about).toBe('')
    else expectJson(reply)
    exactly(reply.body, expected, about)
    return (reply.body ?? {}) as Row
  }

  /** Sends a request that fails, and checks the envelope and, if given, the message. */
  async refused(
    line: string,
    sent: Sent | undefined,
    status: number,
    code: string,
    message?: RegExp,
  ): Promise<Reply> {
    const reply = await this.send(line, sent ?? {})
    expectRefusal(reply, status, code, line, message)
    return reply
  }

  /** Creates a resource and returns its ID. */
  async make(path: string, json: unknown, idField: string): Promise<string> {
    const reply = await this.send(`POST ${path}`, { json })
    expect(reply.status, `POST ${path} → ${reply.text.slice(0, 500)}`).toBe(201)
    return String((reply.body as Row)[idField])
  }

  /** Returns the body of a GET with status 200. */
  async get(path: string): Promise<Row> {
    const reply = await this.send(`GET ${path}`)
    expect(reply.status, `GET ${path} → ${reply.text.slice(0, 500)}`).toBe(200)
    return reply.body as Row
  }

  /** Returns the first page of a list. */
  async items(path: string): Promise<Row[]> {
    return (await this.get(path)).items as Row[]
  }
}

/** Starts one runtime for the tests of a file and checks that it exits with status 0. */
export function useServer(options: ServeOptions = {}): Wire & { serving: Serving } {
  vi.setConfig({ testTimeout: testTimeoutMs, hookTimeout: testTimeoutMs })
  const wire = new Wire() as Wire & { serving: Serving }
  beforeAll(async () => {
    wire.serving = await serve(options)
    wire.open(wire.serving.url)
  })
  afterAll(async () => {
    await wire.close()
    expect(await wire.serving?.stop(), 'exit status after SIGTERM').toBe(0)
  })
  return wire
}

/** Fails unless a response is exactly the envelope of a code. */
export function expectRefusal(
  reply: Reply,
  status: number,
  code: string,
  about: string,
  message?: RegExp,
): void {
  const found = `${about} → ${reply.status} ${reply.text.slice(0, 300)}`
  expect(reply.status, found).toBe(status)
  expectJson(reply)
  exactly(about.includes('/openai/v1/') ? withoutDialect(reply.body) : reply.body, failure(code), found)
  const { error } = reply.body as { error: { message: string; requestId: string } }
  expect(reply.headers['x-request-id'], found).toBe(error.requestId)
  expectIdentified(reply)
  if (message) expect(error.message, found).toMatch(message)
}

/** Removes the two envelope fields that exist for clients of the OpenAI API. */
function withoutDialect(body: unknown): unknown {
  const { type, param, ...error } = (body as { error: Record<string, unknown> }).error
  expect(type).toMatch(/_error$/)
  expect([null, 'string']).toContain(param === null ? null : typeof param)
  return { error }
}

/** Waits until the clock is past a timestamp, so that a later write has another one. */
export async function past(timestamp: unknown): Promise<void> {
  while (Date.now() <= Date.parse(String(timestamp))) await new Promise(resolve => setTimeout(resolve, 1))
}

function expectIdentified(reply: Reply): void {
  expect(reply.headers['x-request-id']).toMatch(/^\S+$/)
  expect(reply.headers.traceparent).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/)
}

function expectJson(reply: Reply): void {
  expect(reply.headers['content-type']).toMatch(/^application\/json(;\s*charset=utf-8)?$/i)
}

function split(line: string): [method: string, path: string] {
  const at = line.indexOf(' ')
  return [line.slice(0, at), line.slice(at + 1)]
}
