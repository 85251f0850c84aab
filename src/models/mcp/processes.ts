import { TimedOut, unlessAborted, within } from '../../base/deadline.ts'
import { presentable } from '../../base/redact.ts'
import { answerTo, type McpAnswer, type McpCall, McpFailure, type McpTool, toolsOf } from './client.ts'
import { type Ask, McpProcess, type McpProcessParts, type StdioServer } from './process.ts'

interface Run {
  readonly started: Promise<McpProcess>
  /** Known once it has started. */
  process?: McpProcess
  failedAtMs?: number
}

/** A server that did not start is left alone for as long. */
const retryAfterMs = 10_000
const listTimeoutMs = 30_000

/** The servers that the configuration declares as commands, one process for each, started when it is first needed. */
export class McpProcesses {
  /** By the id of the server. */
  readonly #runs = new Map<string, Run>()
  /** All that are not gone. */
  readonly #alive = new Set<McpProcess>()
  readonly #closing = new AbortController()

  constructor(private readonly parts: McpProcessParts) {}

  /** A list that nobody waits for any longer is still given its time. @throws McpFailure */
  async listTools(server: StdioServer, signal: AbortSignal): Promise<McpTool[]> {
    const process = await this.#running(server, signal)
    const ask = (until: AbortSignal) => asked(process, until, toolsOf)
    return unlessAborted(within(this.parts.clock, listTimeoutMs, ask), signal)
  }

  /** @throws McpFailure */
  async callTool(server: StdioServer, call: McpCall, signal: AbortSignal): Promise<McpAnswer> {
    const process = await this.#running(server, signal)
    const { text, isError } = await asked(process, signal, (...session) => answerTo(call, ...session))
    return { text: process.shown(text), isError }
  }

  /** End them all, and wait until they are gone. */
  async close(): Promise<void> {
    this.#closing.abort()
    await Promise.all([...this.#runs.values()].map(({ started }) => started.catch(() => {})))
    await Promise.all([...this.#alive].map(process => process.end()))
  }

  /** The start is waited for by all who call meanwhile, and goes on when one of them leaves. */
  #running(server: StdioServer, signal: AbortSignal): Promise<McpProcess> {
    const known = this.#runs.get(server.id)
    const run = known && !this.#isOver(known) ? known : this.#run(server)
    return unlessAborted(run.started, signal)
  }

  #isOver({ process, failedAtMs }: Run): boolean {
    if (process) return !process.isUsable
    return failedAtMs !== undefined && this.parts.clock.now() - failedAtMs >= retryAfterMs
  }

  #run(server: StdioServer): Run {
    const run: Run = { started: this.#start(server) }
    run.started.then(
      process => {
        run.process = process
      },
      () => {
        run.failedAtMs = this.parts.clock.now()
      },
    )
    this.#runs.set(server.id, run)
    return run
  }

  /** @throws McpFailure */
  async #start(server: StdioServer): Promise<McpProcess> {
    const { signal } = this.#closing
    const process = await this.#prepared(server)
    if (signal.aborted) throw new McpFailure('unreachable', 'The runtime is closing.')
    this.#alive.add(process)
    void process.gone.then(() => this.#alive.delete(process))
    await process.start(signal)
    return process
  }

  async #prepared(server: StdioServer): Promise<McpProcess> {
    try {
      return await McpProcess.prepare(server, this.parts)
    } catch (error) {
      const reason = error instanceof McpFailure && error.cause instanceof Error ? error.cause.message : ''
      this.parts.log.warn({ server: server.id, reason: presentable(reason) }, 'a tool server did not start')
      throw error
    }
  }
}

/** A program that leaves something unanswered is ended, so that the next call has a new one. */
async function asked<T>(process: McpProcess, signal: AbortSignal, ask: Ask<T>): Promise<T> {
  try {
    return await process.use(signal, ask)
  } finally {
    if (signal.reason instanceof TimedOut) process.retire()
  }
}
