import { TimedOut, unlessAborted, withTimeout } from '../../base/deadline.ts'
import { presentableMessage } from '../../base/redact.ts'
import { callToolOf, listToolsOf, type McpAnswer, type McpCall, McpFailure, type McpTool } from './client.ts'
import { McpProcess, type McpProcessParts, type ProgramRequest, type StdioServer } from './mcp-process.ts'

interface ProgramRun {
  readonly started: Promise<McpProcess>
  /** Set after the start. */
  process?: McpProcess
  failedAtMs?: number
}

/** Minimum time between a failed start and the next attempt. */
const retryAfterMs = 10_000
const listTimeoutMs = 30_000

/** Manages servers that the configuration declares as commands: one process each, started on first use. */
export class McpProcesses {
  /** Runs by server ID. */
  readonly #runs = new Map<string, ProgramRun>()
  /** All processes that have not ended. */
  readonly #alive = new Set<McpProcess>()
  readonly #closing = new AbortController()

  constructor(private readonly parts: McpProcessParts) {}

  /**
   * Returns the tools of a server. The request continues when the caller stops waiting.
   *
   * @throws McpFailure
   */
  async listTools(server: StdioServer, signal: AbortSignal): Promise<McpTool[]> {
    const process = await this.#running(server, signal)
    const ask = (until: AbortSignal) => sendToProgram(process, until, listToolsOf)
    return unlessAborted(withTimeout(this.parts.clock, listTimeoutMs, ask), signal)
  }

  /** @throws McpFailure */
  async callTool(server: StdioServer, call: McpCall, signal: AbortSignal): Promise<McpAnswer> {
    const process = await this.#running(server, signal)
    const { text, isError } = await sendToProgram(process, signal, (...session) =>
      callToolOf(call, ...session),
    )
    return { text: process.hideSecrets(text), isError }
  }

  /** Ends all processes, and waits for their end. */
  async close(): Promise<void> {
    this.#closing.abort()
    await Promise.all([...this.#runs.values()].map(({ started }) => started.catch(() => {})))
    await Promise.all([...this.#alive].map(process => process.end()))
  }

  /**
   * Returns the running process of a server. Concurrent callers share a start, which continues when one of
   * them aborts.
   */
  #running(server: StdioServer, signal: AbortSignal): Promise<McpProcess> {
    const known = this.#runs.get(server.id)
    const run = known && !this.#isOver(known) ? known : this.#run(server)
    return unlessAborted(run.started, signal)
  }

  #isOver({ process, failedAtMs }: ProgramRun): boolean {
    if (process) return !process.isUsable
    return failedAtMs !== undefined && this.parts.clock.now() - failedAtMs >= retryAfterMs
  }

  #run(server: StdioServer): ProgramRun {
    const run: ProgramRun = { started: this.#start(server) }
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
      this.parts.log.warn(
        { server: server.id, reason: presentableMessage(reason) },
        'a tool server did not start',
      )
      throw error
    }
  }
}

/**
 * Sends a request to a program. A program that does not answer in time is ended, so that the next call starts
 * a new one.
 */
async function sendToProgram<T>(
  process: McpProcess,
  signal: AbortSignal,
  ask: ProgramRequest<T>,
): Promise<T> {
  try {
    return await process.use(signal, ask)
  } finally {
    if (signal.reason instanceof TimedOut) process.retire()
  }
}
