import type { Client, JSONRPCMessage } from '@modelcontextprotocol/client'
import type { Clock } from '../../base/clock.ts'
import { unlessAborted, withTimeout } from '../../base/deadline.ts'
import { createFolder } from '../../base/folder.ts'
import type { Log } from '../../base/log.ts'
import { presentableMessage } from '../../base/redact.ts'
import type { ConfigEnvironment } from '../../config/config-environment.ts'
import type { Config } from '../../config/schema.ts'
import { resolveSecret } from '../../config/secret-ref.ts'
import {
  createMcpClient,
  McpFailure,
  type McpSdk,
  mcpTimeout,
  sessionBytesMax,
  sessionRequestsMax,
} from './client.ts'
import { createProgramTransport, type ProgramTransport } from './program-transport.ts'
import { StderrLog } from './stderr-log.ts'

/** An MCP server that the configuration declares as a command. */
export type StdioServer = Config['mcp']['stdioServers'][number]

export interface McpProcessDependencies {
  readonly environment: ConfigEnvironment
  readonly clock: Clock
  readonly log: Log
  /** Absolute path of the working directory of the commands. */
  readonly folder: string
}

/** Sends a request to a running server. */
export type ProgramRequest<T> = (client: Client, signal: AbortSignal, sdk: McpSdk) => Promise<T>

/** Maximum time to start a program. The first start can include a download. */
const startTimeoutMs = 30_000
/** Maximum time for ending a program: three steps of two seconds each. */
const endTimeoutMs = 6_000
/** Time after which an idle program is ended. */
const idleMs = 300_000
/** Environment variables that programs inherit, on all platforms. They contain no secrets. */
const inheritedVariables = new Set(
  ['PATH', 'HOME', 'APPDATA', 'COMSPEC', 'HOMEDRIVE', 'HOMEPATH', 'LOCALAPPDATA', 'PATHEXT'].concat(
    ['PROGRAMDATA', 'PROGRAMFILES', 'PROGRAMFILES(X86)', 'PROGRAMW6432', 'SYSTEMDRIVE', 'SYSTEMROOT'],
    ['TEMP', 'USERPROFILE', 'WINDIR'],
  ),
)

/**
 * A process of an MCP server that the configuration declares as a command.
 *
 * The command, its arguments and its environment come only from the configuration. Text from a model reaches the
 * program only as JSON on its standard input.
 *
 * @see docs/security.md#rule-9
 */
export class McpProcess {
  #calls = 0
  /** Number of calls since the program was last idle. The size and request limits are multiplied by this number. */
  #recentCalls = 1
  #bytes = 0
  #requests = 0
  #isRetired = false
  #cancelIdleTimer = () => {}
  #ending: Promise<void> | undefined
  /** Aborts with an `McpFailure` when the program can no longer be used. */
  readonly #unusable = new AbortController()
  /** Resolves when the program has ended. */
  readonly ended: Promise<void>
  readonly #client: Client

  private constructor(
    private readonly server: StdioServer,
    private readonly sdk: McpSdk,
    private readonly transport: ProgramTransport,
    /** Replaces the program's secrets in a text with a placeholder. */
    readonly redactSecrets: (text: string) => string,
    private readonly deps: McpProcessDependencies,
  ) {
    // Mode `auto` would start a second process to detect the protocol version. All servers support the legacy version.
    this.#client = createMcpClient(sdk, 'legacy')
    this.#client.onclose = () => this.#unusable.abort(new McpFailure('unreachable', 'The server has exited.'))
    transport.onmessage = message => this.#enforceLimits(message)
    this.ended = new Promise(resolve => {
      transport.onclose = resolve
    })
  }

  /**
   * Creates an instance, but does not start the program.
   *
   * @throws McpFailure  a secret in the environment of the program does not resolve
   */
  static async prepare(server: StdioServer, deps: McpProcessDependencies): Promise<McpProcess> {
    const secrets = secretsOf(server, deps.environment)
    const redactSecrets = (text: string) =>
      Object.values(secrets).reduce((cleaned, secret) => cleaned.replaceAll(secret, '[redacted]'), text)
    createFolder(deps.folder)
    const sdk = await import('@modelcontextprotocol/client')
    const stdio = await import('@modelcontextprotocol/client/stdio')
    const transport = createProgramTransport(sdk, stdio, {
      command: server.command,
      args: server.args,
      env: {
        ...stdio.getDefaultEnvironment(),
        ...unsetVariables(stdio.DEFAULT_INHERITED_ENV_VARS),
        ...server.env,
        ...secrets,
      },
      cwd: deps.folder,
      maxBufferSize: sessionBytesMax,
    })
    const { clock, log } = deps
    const lines = new StderrLog(clock, redactSecrets, line =>
      log.info({ server: server.id, line }, 'output of a tool server'),
    )
    transport.stderr?.on('data', (part: Buffer) => lines.write(part.toString()))
    transport.stderr?.on('end', () => lines.end())
    return new McpProcess(server, sdk, transport, redactSecrets, deps)
  }

  /**
   * Starts the program and connects to it.
   *
   * @param signal  cancels the start
   * @throws McpFailure
   */
  async start(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.deps
    try {
      await withTimeout(
        clock,
        startTimeoutMs,
        connectSignal => this.#client.connect(this.transport, { signal: connectSignal }),
        signal,
      )
      this.#client.onerror = () => queueMicrotask(() => this.#checkOpen())
      this.#becomeIdle()
    } catch (error) {
      this.#fail(new McpFailure('unreachable', 'The server cannot be started.', error))
      // The error itself is not logged, because it contains all arguments if the command is not found.
      const reason = presentableMessage(this.redactSecrets(error instanceof Error ? error.message : ''))
      log.warn({ server: this.server.id, reason }, 'a tool server did not start')
      throw this.#unusable.signal.reason
    }
  }

  /** True if new calls are accepted. */
  get isUsable(): boolean {
    return !this.#isRetired && !this.#unusable.signal.aborted
  }

  /**
   * Sends a request to the program.
   *
   * @param signal  cancels the request
   * @throws McpFailure
   */
  async use<T>(signal: AbortSignal, request: ProgramRequest<T>): Promise<T> {
    this.#startCall()
    try {
      return await unlessAborted(request(this.#client, signal, this.sdk), this.#unusable.signal)
    } catch (error) {
      if (this.#unusable.signal.aborted) throw this.#unusable.signal.reason
      if (signal.aborted) throw mcpTimeout(error)
      throw new McpFailure('protocol_error', 'The server does not respond like an MCP server.', error)
    } finally {
      this.#calls--
      if (this.#calls === 0) this.#becomeIdle()
    }
  }

  /** Stops accepting calls, and ends the program after the calls in progress. */
  retire(): void {
    this.#isRetired = true
    if (this.#calls === 0) this.end()
  }

  /**
   * Ends the program now.
   *
   * @returns a promise that resolves when the program has ended, or after the time limit
   */
  end(): Promise<void> {
    this.#unusable.abort(new McpFailure('unreachable', 'The server was stopped.'))
    this.#cancelIdleTimer()
    this.#ending ??= this.#close()
    return this.#ending
  }

  async #close(): Promise<void> {
    await this.#client.close()
    await this.transport.close()
    await withTimeout(this.deps.clock, endTimeoutMs, () => this.ended).catch(() => {})
  }

  #startCall(): void {
    this.#cancelIdleTimer()
    if (this.#calls === 0) {
      this.#recentCalls = 0
      this.#bytes = 0
      this.#requests = 0
    }
    this.#calls++
    this.#recentCalls++
  }

  #becomeIdle(): void {
    if (this.#isRetired) this.end()
    else this.#cancelIdleTimer = this.deps.clock.after(idleMs, () => this.retire())
  }

  /**
   * Applies the limits of HTTP sessions to the program, because the client reads every message and responds to every
   * request of a server.
   */
  #enforceLimits(message: JSONRPCMessage): void {
    this.#bytes += Buffer.byteLength(JSON.stringify(message))
    if ('method' in message && 'id' in message) this.#requests++
    if (this.#bytes > sessionBytesMax * this.#recentCalls) this.#fail(responseTooLarge())
    if (this.#requests > sessionRequestsMax * this.#recentCalls)
      this.#fail(
        new McpFailure('protocol_error', `The server sent more than ${sessionRequestsMax} requests.`),
      )
  }

  /** Ends the program if the transport has closed itself, which happens if a message is too large. */
  #checkOpen(): void {
    if (this.transport.pid === null) this.#fail(responseTooLarge())
  }

  #fail(failure: McpFailure): void {
    this.#unusable.abort(failure)
    this.end()
  }
}

function responseTooLarge(): McpFailure {
  return new McpFailure('too_large', `The server sent more than ${sessionBytesMax} bytes.`)
}

/** @throws McpFailure */
function secretsOf({ secretEnv }: StdioServer, environment: ConfigEnvironment): Record<string, string> {
  try {
    return Object.fromEntries(
      Object.entries(secretEnv).map(([name, ref]) => [name, resolveSecret(ref, environment)]),
    )
  } catch (error) {
    throw new McpFailure('credential_unavailable', 'A secret of the server cannot be resolved.', error)
  }
}

/** Returns an undefined value for each variable that the SDK passes by default but programs must not inherit. */
function unsetVariables(defaults: readonly string[]): Record<string, undefined> {
  const notInherited = defaults.filter(name => !inheritedVariables.has(name))
  return Object.fromEntries(notInherited.map(name => [name, undefined]))
}
