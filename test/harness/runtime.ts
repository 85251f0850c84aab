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

export interface Options extends RuntimeOverrides {
  /** Of a runtime that was opened before, to open a second one beside it. */
  readonly dataDir?: string
  readonly server?: boolean
  readonly threads?: boolean
  /** Configuration, as `workbase.yaml` would hold it without `version`. */
  readonly config?: object
  /** Variables of the environment. */
  readonly environment?: Readonly<Record<string, string>>
  /** Headers of every request. */
  readonly headers?: Readonly<Record<string, string>>
}

/** A runtime in this process. */
export interface Opened {
  readonly runtime: Runtime
  readonly dataDir: string
  /** Typed calls; a refusal is thrown as its `WbError`. */
  readonly call: Client['call']
  /** The same as the owner of the data directory. */
  readonly callAsOperator: Client['call']
  /** Any request: `POST /api/v1/workspaces`. A form is sent as a form. */
  send(line: string, json?: unknown, headers?: Readonly<Record<string, string>>): Promise<Sent>
  /** The same as the owner of the data directory. */
  sendAsOperator(line: string, json?: unknown): Promise<Sent>
  /** What the runtime wrote to its log as a warning or an error. */
  readonly complaints: Complaint[]
  /** Finish the fits that are due. */
  settle(): Promise<void>
  /** Let go of it before the test ends. */
  close(): Promise<void>
}

export interface Sent {
  readonly status: number
  readonly text: string
  readonly body: Record<string, unknown>
  readonly headers: Headers
}

export interface Complaint {
  readonly message: string
  readonly facts: Record<string, unknown>
}

const origin = 'http://localhost'

/** A folder that goes when the test ends. */
export function scratchDir(): string {
  const folder = mkdtempSync(join(tmpdir(), 'wb-runtime-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Open a runtime as a command does, or with `server` and `threads` as `wb serve` does; it is closed with the test. */
export async function open(options: Options = {}): Promise<Opened> {
  const { server = false, threads = false, headers = {} } = options
  const dataDir = options.dataDir ?? (await newDataDir(options.config))
  const complaints: Complaint[] = []
  const environment = createEnvironment(options.environment ?? {})
  const runtime = await openRuntime(
    {
      config: loadConfig({ path: written(options.config) }, environment).config,
      environment,
      dataDir,
      threads,
      loopback: true,
      server,
      log: logInto(complaints),
    },
    { strictErrors: true, keyCost: lowCost, ...options },
  )
  let closing: Promise<void> | undefined
  const close = () => {
    closing ??= runtime.close()
    return closing
  }
  onTestFinished(close)
  const fetch = (path: string, request: RequestInit, as?: 'operator') => {
    const own = { ...headers, ...(request.headers as Record<string, string>) }
    return runtime.fetch(new Request(origin + path, { ...request, headers: own }), as)
  }
  const callAs = (as?: 'operator') =>
    openClient({
      baseUrl: '',
      fetch: (path, request) => fetch(path, { ...request, duplex: 'half' } as RequestInit, as),
    }).call
  async function send(line: string, json?: unknown, more = {}, as?: 'operator'): Promise<Sent> {
    const [method, path] = line.split(' ') as [string, string]
    const isForm = json instanceof FormData
    const body = json === undefined ? {} : { body: isForm ? json : JSON.stringify(json) }
    const answer = await fetch(
      path,
      { method, ...body, headers: { ...(json !== undefined && !isForm && jsonHeaders), ...more } },
      as,
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
    complaints,
    close,
    settle: () => runtime.settle({ signal: new AbortController().signal, onProgress: () => {} }),
    send: (line, json, more) => send(line, json, more),
    sendAsOperator: (line, json) => send(line, json, {}, 'operator'),
  }
}

/** Creates a data directory; its store, if a file, has the current schema already. */
async function newDataDir(config: object = {}): Promise<string> {
  const dataDir = join(scratchDir(), 'data')
  if (!('controlPlane' in config)) await writeMigratedStore(join(dataDir, 'workbase.db'))
  return dataDir
}

/** A configuration as a file; JSON is YAML. */
function written(config: object | undefined): string | null {
  if (!config) return null
  const path = join(scratchDir(), 'workbase.yaml')
  writeFileSync(path, JSON.stringify({ version: 1, ...config }))
  return path
}

const jsonHeaders = { 'content-type': 'application/json' }

function logInto(complaints: Complaint[]): Log {
  const complain = (facts: object, message: string) => void complaints.push({ message, facts: { ...facts } })
  return { debug() {}, info() {}, warn: complain, error: complain }
}

/** Time that stands still until it is told to move. */
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

  /** Move on, and run what falls due. */
  advance(ms: number): void {
    this.#now += ms
    const due = this.#timers.filter(timer => timer.at <= this.#now)
    this.#timers = this.#timers.filter(timer => timer.at > this.#now)
    for (const { run } of due) run()
  }
}

/** Wait until something holds that other threads or timers bring about. */
export async function until(what: () => boolean | Promise<boolean>): Promise<void> {
  await vi.waitUntil(what, { timeout: 20_000, interval: 5 })
}
