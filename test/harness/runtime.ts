import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished, vi } from 'vitest'
import type { Clock } from '../../src/base/clock.ts'
import type { Log } from '../../src/base/log.ts'
import { type Client, openClient } from '../../src/client/client.ts'
import { createEnvironment } from '../../src/config/config-environment.ts'
import { loadConfig } from '../../src/config/load-config.ts'
import { openRuntime, type Runtime, type RuntimeOverrides } from '../../src/runtime.ts'
import { lowCost } from './key-cost.ts'
import { writeMigratedStore } from './migrated-store.ts'

export interface TestRuntimeOptions extends RuntimeOverrides {
  /** Data directory of another open runtime that it shares. */
  readonly dataDir?: string
  readonly server?: boolean
  readonly threads?: boolean
  /** Content of `workbase.yaml` without `version`. */
  readonly config?: object
  /** Environment variables. */
  readonly environment?: Readonly<Record<string, string>>
  /** Headers of every request. */
  readonly headers?: Readonly<Record<string, string>>
}

/** A runtime in this process. */
export interface TestRuntime {
  readonly runtime: Runtime
  readonly dataDir: string
  /** Sends a typed request; an error is thrown as `WbError`. */
  readonly call: Client['call']
  /** Like {@link call}, as the owner of the data directory. */
  readonly callAsOperator: Client['call']
  /** Sends any request, such as `POST /api/v1/workspaces`. A form is sent as a form. */
  send(line: string, json?: unknown, headers?: Readonly<Record<string, string>>): Promise<TestResponse>
  /** Like {@link send}, as the owner of the data directory. */
  sendAsOperator(line: string, json?: unknown): Promise<TestResponse>
  /** Warnings and errors in the log. */
  readonly loggedProblems: LoggedProblem[]
  /** Completes pending fits. */
  settle(): Promise<void>
  /** Closes the runtime before the test ends. */
  close(): Promise<void>
}

export interface TestResponse {
  readonly status: number
  readonly text: string
  readonly body: Record<string, unknown>
  readonly headers: Headers
}

export interface LoggedProblem {
  readonly message: string
  readonly facts: Record<string, unknown>
}

const origin = 'http://localhost'

/** Creates a folder that is deleted when the test ends. */
export function scratchDir(): string {
  const folder = mkdtempSync(join(tmpdir(), 'wb-runtime-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/**
 * Opens a runtime in command mode, or with `server` and `threads` in server mode; it is closed when the test ends.
 */
export async function open(options: TestRuntimeOptions = {}): Promise<TestRuntime> {
  const { server = false, threads = false, headers = {} } = options
  const dataDir = options.dataDir ?? (await createDataDir(options.config))
  const loggedProblems: LoggedProblem[] = []
  const environment = createEnvironment(options.environment ?? {})
  const runtime = await openRuntime(
    {
      config: loadConfig({ path: writeConfig(options.config) }, environment).config,
      environment,
      dataDir,
      threads,
      loopback: true,
      server,
      log: logInto(loggedProblems),
    },
    { strictErrors: true, keyCost: lowCost, sentenceModel: null, ...options },
  )
  let closing: Promise<void> | undefined
  const close = () => {
    closing ??= runtime.close()
    return closing
  }
  onTestFinished(close)
  const fetch = (path: string, request: RequestInit, caller?: 'operator') => {
    const allHeaders = { ...headers, ...(request.headers as Record<string, string>) }
    return runtime.fetch(new Request(origin + path, { ...request, headers: allHeaders }), caller)
  }
  const callAs = (caller?: 'operator') =>
    openClient({
      baseUrl: '',
      fetch: (path, request) => fetch(path, { ...request, duplex: 'half' } as RequestInit, caller),
    }).call
  async function send(line: string, json?: unknown, more = {}, caller?: 'operator'): Promise<TestResponse> {
    const [method, path] = line.split(' ') as [string, string]
    const isForm = json instanceof FormData
    const body = json === undefined ? {} : { body: isForm ? json : JSON.stringify(json) }
    const answer = await fetch(
      path,
      { method, ...body, headers: { ...(json !== undefined && !isForm && jsonHeaders), ...more } },
      caller,
    )
    const text = await answer.text()
    const isJson = answer.headers.get('content-type')?.startsWith('application/json')
    const parsed = isJson ? (JSON.parse(text) as Record<string, unknown>) : {}
    return { status: answer.status, text, body: parsed, headers: answer.headers }
  }
  return {
    runtime,
    dataDir,
    call: callAs(),
    callAsOperator: callAs('operator'),
    loggedProblems,
    close,
    settle: () => runtime.settle({ signal: new AbortController().signal, onProgress: () => {} }),
    send: (line, json, more) => send(line, json, more),
    sendAsOperator: (line, json) => send(line, json, {}, 'operator'),
  }
}

/** Creates a data directory. If its store is a file, the file has the current schema. */
async function createDataDir(config: object = {}): Promise<string> {
  const dataDir = join(scratchDir(), 'data')
  if (!('controlPlane' in config)) await writeMigratedStore(join(dataDir, 'workbase.db'))
  return dataDir
}

/** Writes a configuration as a JSON file, which is valid YAML. */
function writeConfig(config: object | undefined): string | null {
  if (!config) return null
  const path = join(scratchDir(), 'workbase.yaml')
  writeFileSync(path, JSON.stringify({ version: 1, ...config }))
  return path
}

const jsonHeaders = { 'content-type': 'application/json' }

function logInto(loggedProblems: LoggedProblem[]): Log {
  const complain = (facts: object, message: string) =>
    void loggedProblems.push({ message, facts: { ...facts } })
  return { debug() {}, info() {}, warn: complain, error: complain }
}

/** A clock that changes only when a test advances it. */
export class TestClock implements Clock {
  #now = Date.parse('2026-01-01T00:00:00.000Z')
  #timers: { at: number; run: () => void }[] = []

  now(): number {
    return this.#now
  }

  after(delayMs: number, run: () => void): () => void {
    const timer = { at: this.#now + delayMs, run }
    this.#timers.push(timer)
    return () => {
      this.#timers = this.#timers.filter(other => other !== timer)
    }
  }

  /** Advances the time and runs due timers. */
  advance(ms: number): void {
    this.#now += ms
    const due = this.#timers.filter(timer => timer.at <= this.#now)
    this.#timers = this.#timers.filter(timer => timer.at > this.#now)
    for (const { run } of due) run()
  }
}

/** Waits until a condition that depends on other threads or timers is true. */
export async function waitUntil(what: () => boolean | Promise<boolean>): Promise<void> {
  await vi.waitUntil(what, { timeout: 20_000, interval: 5 })
}
