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
import { createProgramTransport, type ProgramTransport } from './process-group.ts'
import { StderrLog } from './stderr-log.ts'

/** Tool server that the configuration declares as a command. */
export type StdioServer = Config['mcp']['stdioServers'][number]

export interface McpProcessParts {
  readonly environment: ConfigEnvironment
  readonly clock: Clock
  readonly log: Log
  /** Working directory of commands, as an absolute path. */
  readonly folder: string
}

/** Request to a running server. */
export type ProgramRequest<T> = (client: Client, until: AbortSignal, sdk: McpSdk) => Promise<T>

/** Maximum time for a start. The first start can download the program. */
const startTimeoutMs = 30_000
/** Maximum time for an end: three steps of two seconds each. */
const endTimeoutMs = 6_000
/** Time without calls after which a program is ended. */
const idleMs = 300_000
/** Environment variables that programs inherit, on each platform. None of them contains a secret. */
const inherited = new Set(
  ['PATH', 'HOME', 'APPDATA', 'COMSPEC', 'HOMEDRIVE', 'HOMEPATH', 'LOCALAPPDATA', 'PATHEXT'].concat(
    ['PROGRAMDATA', 'PROGRAMFILES', 'PROGRAMFILES(X86)', 'PROGRAMW6432', 'SYSTEMDRIVE', 'SYSTEMROOT'],
    ['TEMP', 'USERPROFILE', 'WINDIR'],
  ),
)

/**
 * One run of a declared server, from its start to its end.
 *
 * Command, arguments and environment come only from the configuration. Text of a model reaches the program
 * only as JSON on its standard input.
 *
 * @see docs/security.md#rule-9
 */
export class McpProcess {
  #calls = 0
  /** Number of calls since the program was last idle. The limits grow with it. */
  #turns = 1
  #bytes = 0
  #requests = 0
  #isRetired = false
  #keepAlive = () => {}
  #ending: Promise<void> | undefined
  /** Fires with an `McpFailure` when the program can no longer be used. */
  readonly #unusable = new AbortController()
  /** Settles when the program has ended. */
  readonly gone: Promise<void>
  readonly #client: Client

  private constructor(
    private readonly server: StdioServer,
    private readonly sdk: McpSdk,
    private readonly transport: ProgramTransport,
    private readonly hide: (text: string) => string,
    private readonly parts: McpProcessParts,
  ) {
    // Mode `auto` starts a second process to detect the protocol version. All servers support the legacy
    // version.
    this.#client = createMcpClient(sdk, 'legacy')
    this.#client.onclose = () => this.#unusable.abort(programFailure('unreachable', 'The server ended.'))
    transport.onmessage = message => this.#count(message)
    this.gone = new Promise(resolve => {
      transport.onclose = resolve
    })
  }

  /**
   * Prepares a run without starting the program.
   *
   * @throws McpFailure  a secret of its environment does not resolve
   */
  static async prepare(server: StdioServer, parts: McpProcessParts): Promise<McpProcess> {
    const secrets = secretsOf(server, parts.environment)
    const hide = (text: string) =>
      Object.values(secrets).reduce((cleaned, secret) => cleaned.replaceAll(secret, '[redacted]'), text)
    createFolder(parts.folder)
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
      cwd: parts.folder,
      maxBufferSize: sessionBytesMax,
    })
    const { clock, log } = parts
    const lines = new StderrLog(clock, hide, line =>
      log.info({ server: server.id, line }, 'a tool server says'),
    )
    transport.stderr?.on('data', (part: Buffer) => lines.write(part.toString()))
    transport.stderr?.on('end', () => lines.end())
    return new McpProcess(server, sdk, transport, hide, parts)
  }

  /**
   * Starts the program and connects to it.
   *
   * @param until  ends the start
   * @throws McpFailure
   */
  async start(until: AbortSignal): Promise<void> {
    const { clock, log } = this.parts
    try {
      await withTimeout(
        clock,
        startTimeoutMs,
        signal => this.#client.connect(this.transport, { signal }),
        until,
      )
      this.#client.onerror = () => queueMicrotask(() => this.#checkOpen())
      this.#becomeIdle()
    } catch (error) {
      this.#break(programFailure('unreachable', 'The server cannot be started.', error))
      // Without the error itself: for a command that is not found, it contains all arguments.
      const reason = presentableMessage(this.hide(error instanceof Error ? error.message : ''))
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
   * @param signal  aborted when the caller stops waiting
   * @throws McpFailure
   */
  async use<T>(signal: AbortSignal, ask: ProgramRequest<T>): Promise<T> {
    this.#begin()
    try {
      return await unlessAborted(ask(this.#client, signal, this.sdk), this.#unusable.signal)
    } catch (error) {
      if (this.#unusable.signal.aborted) throw this.#unusable.signal.reason
      if (signal.aborted) throw mcpTimeout(error)
      throw programFailure('protocol_error', 'The server does not answer as an MCP server does.', error)
    } finally {
      this.#calls--
      if (this.#calls === 0) this.#becomeIdle()
    }
  }

  /** Removes the secrets of the program from a text. */
  hideSecrets(text: string): string {
    return this.hide(text)
  }

  /** Accepts no more calls. The program ends after the calls in progress. */
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
    this.#unusable.abort(programFailure('unreachable', 'The server was ended.'))
    this.#keepAlive()
    this.#ending ??= this.#onEnded()
    return this.#ending
  }

  async #onEnded(): Promise<void> {
    await this.#client.close()
    await this.transport.close()
    await withTimeout(this.parts.clock, endTimeoutMs, () => this.gone).catch(() => {})
  }

  #begin(): void {
    this.#keepAlive()
    if (this.#calls === 0) {
      this.#turns = 0
      this.#bytes = 0
      this.#requests = 0
    }
    this.#calls++
    this.#turns++
  }

  #becomeIdle(): void {
    if (this.#isRetired) this.end()
    else this.#keepAlive = this.parts.clock.after(idleMs, () => this.retire())
  }

  /**
   * Applies the limits of HTTP sessions, because the client reads every message and answers every request of
   * a server.
   */
  #count(message: JSONRPCMessage): void {
    this.#bytes += Buffer.byteLength(JSON.stringify(message))
    if ('method' in message && 'id' in message) this.#requests++
    if (this.#bytes > sessionBytesMax * this.#turns) this.#break(answerTooLarge())
    if (this.#requests > sessionRequestsMax * this.#turns)
      this.#break(
        programFailure('protocol_error', `The server sent more than ${sessionRequestsMax} requests.`),
      )
  }

  /** Fails the run if the transport has closed itself, which happens when a message is too large. */
  #checkOpen(): void {
    if (this.transport.pid === null) this.#break(answerTooLarge())
  }

  #break(failure: McpFailure): void {
    this.#unusable.abort(failure)
    this.end()
  }
}

function programFailure(code: McpFailure['code'], message: string, cause?: unknown): McpFailure {
  return new McpFailure(code, message, cause)
}

function answerTooLarge(): McpFailure {
  return programFailure('too_large', `The server sent more than ${sessionBytesMax} bytes.`)
}

/** @throws McpFailure */
function secretsOf({ secretEnv }: StdioServer, environment: ConfigEnvironment): Record<string, string> {
  try {
    return Object.fromEntries(
      Object.entries(secretEnv).map(([name, ref]) => [name, resolveSecret(ref, environment)]),
    )
  } catch (error) {
    throw programFailure('credential_unavailable', 'A secret of the server cannot be resolved.', error)
  }
}

/** Returns variables as undefined, which removes them from the SDK's default environment. */
function unsetVariables(passedOn: readonly string[]): Record<string, undefined> {
  const unwanted = passedOn.filter(name => !inherited.has(name))
  return Object.fromEntries(unwanted.map(name => [name, undefined]))
}
