import { TimedOut, unlessAborted, withTimeout } from '../../base/deadline.ts'
import { presentableMessage } from '../../base/redact.ts'
import {
  callToolOf,
  listToolsOf,
  type McpCall,
  McpFailure,
  type McpTool,
  type McpToolResult,
} from './client.ts'
import {
  McpProcess,
  type McpProcessDependencies,
  type ProgramRequest,
  type StdioServer,
} from './mcp-process.ts'

interface ProgramRun {
  readonly started: Promise<McpProcess>
  /** Set after a successful start. */
  process?: McpProcess
  failedAtMs?: number
}

/** Minimum time between a failed start and the next attempt. */
const retryAfterMs = 10_000
const listTimeoutMs = 30_000

/** Runs the MCP servers that the configuration declares as commands. Each has one process, started on first use. */
export class McpProcesses {
  /** Runs by server ID. */
  readonly #runs = new Map<string, ProgramRun>()
  /** All processes that have not ended. */
  readonly #liveProcesses = new Set<McpProcess>()
  readonly #closing = new AbortController()

  constructor(private readonly deps: McpProcessDependencies) {}

  /**
   * Returns the tools of a server. Aborting the signal ends the wait, but not the request to the server.
   *
   * @throws McpFailure
   */
  async listTools(server: StdioServer, signal: AbortSignal): Promise<McpTool[]> {
    const process = await this.#runningProcess(server, signal)
    const request = (timeoutSignal: AbortSignal) => sendToProgram(process, timeoutSignal, listToolsOf)
    return unlessAborted(withTimeout(this.deps.clock, listTimeoutMs, request), signal)
  }

  /** @throws McpFailure */
  async callTool(server: StdioServer, call: McpCall, signal: AbortSignal): Promise<McpToolResult> {
    const process = await this.#runningProcess(server, signal)
    const { text, isError } = await sendToProgram(process, signal, (...session) =>
      callToolOf(call, ...session),
    )
    return { text: process.redactSecrets(text), isError }
  }

  /** Ends all processes, and waits until they have ended. */
  async close(): Promise<void> {
    this.#closing.abort()
    await Promise.all([...this.#runs.values()].map(({ started }) => started.catch(() => {})))
    await Promise.all([...this.#liveProcesses].map(process => process.end()))
  }

  /**
   * Returns the running process of a server. Concurrent callers wait for the same start, which continues if one of them
   * aborts.
   */
  #runningProcess(server: StdioServer, signal: AbortSignal): Promise<McpProcess> {
    const previous = this.#runs.get(server.id)
    const run = previous && !this.#mustRestart(previous) ? previous : this.#startRun(server)
    return unlessAborted(run.started, signal)
  }

  #mustRestart({ process, failedAtMs }: ProgramRun): boolean {
    if (process) return !process.isUsable
    return failedAtMs !== undefined && this.deps.clock.now() - failedAtMs >= retryAfterMs
  }

  #startRun(server: StdioServer): ProgramRun {
    const run: ProgramRun = { started: this.#start(server) }
    run.started.then(
      process => {
        run.process = process
      },
      () => {
        run.failedAtMs = this.deps.clock.now()
      },
    )
    this.#runs.set(server.id, run)
    return run
  }

  /** @throws McpFailure */
  async #start(server: StdioServer): Promise<McpProcess> {
    const { signal } = this.#closing
    const process = await this.#prepare(server)
    if (signal.aborted) throw new McpFailure('unreachable', 'The runtime is closing.')
    this.#liveProcesses.add(process)
    void process.ended.then(() => this.#liveProcesses.delete(process))
    await process.start(signal)
    return process
  }

  async #prepare(server: StdioServer): Promise<McpProcess> {
    try {
      return await McpProcess.prepare(server, this.deps)
    } catch (error) {
      const reason = error instanceof McpFailure && error.cause instanceof Error ? error.cause.message : ''
      this.deps.log.warn(
        { server: server.id, reason: presentableMessage(reason) },
        'a tool server did not start',
      )
      throw error
    }
  }
}

/**
 * Sends a request to a program. If the program does not respond in time, retires it, so that the next call starts a new
 * process.
 */
async function sendToProgram<T>(
  process: McpProcess,
  signal: AbortSignal,
  request: ProgramRequest<T>,
): Promise<T> {
  try {
    return await process.use(signal, request)
  } finally {
    if (signal.reason instanceof TimedOut) process.retire()
  }
}
