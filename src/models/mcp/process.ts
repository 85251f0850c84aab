import type { Client, JSONRPCMessage } from '@modelcontextprotocol/client'
import type { Clock } from '../../base/clock.ts'
import { unlessAborted, within } from '../../base/deadline.ts'
import { createFolder } from '../../base/folder.ts'
import type { Log } from '../../base/log.ts'
import { presentable } from '../../base/redact.ts'
import type { Environment } from '../../config/environment.ts'
import type { Config } from '../../config/schema.ts'
import { resolveSecret } from '../../config/secret-ref.ts'
import { answerBytesMax, McpFailure, type McpSdk, mcpClient, notInTime, requestsMax } from './client.ts'
import { type ProgramTransport, transportTo } from './process-group.ts'
import { ErrorLines } from './stderr.ts'

/** A tool server that the configuration declares as a command. */
export type StdioServer = Config['mcp']['stdioServers'][number]

export interface McpProcessParts {
  readonly environment: Environment
  readonly clock: Clock
  readonly log: Log
  /** Absolute path: where commands are started, whatever folder the runtime was started in. */
  readonly folder: string
}

/** What is done with a server that runs. */
export type Ask<T> = (client: Client, until: AbortSignal, sdk: McpSdk) => Promise<T>

/** Programs that are fetched when they are first started take a while. */
const startTimeoutMs = 30_000
/** The program is asked to go, told to, and killed, each after two seconds. */
const endTimeoutMs = 6_000
/** A program that nobody has called for as long is ended. */
const idleMs = 300_000
/** What programs need to find themselves and others, on each platform; nothing of it is a secret. */
const inherited = new Set(
  ['PATH', 'HOME', 'APPDATA', 'COMSPEC', 'HOMEDRIVE', 'HOMEPATH', 'LOCALAPPDATA', 'PATHEXT'].concat(
    ['PROGRAMDATA', 'PROGRAMFILES', 'PROGRAMFILES(X86)', 'PROGRAMW6432', 'SYSTEMDRIVE', 'SYSTEMROOT'],
    ['TEMP', 'USERPROFILE', 'WINDIR'],
  ),
)

/**
 * One run of a declared server, from its start until it ends, for whatever reason.
 *
 * Command, arguments and environment are the configuration's alone; what a model says reaches the program as JSON on its
 * standard input.
 *
 * @see docs/security.md#rule-9
 */
export class McpProcess {
  #calls = 0
  /** Calls since nobody called: what may pass grows with them. */
  #turns = 1
  #bytes = 0
  #requests = 0
  #isRetired = false
  #keepAlive = () => {}
  #ending: Promise<void> | undefined
  /** Fires once the program cannot be used any more, with an `McpFailure`. */
  readonly #over = new AbortController()
  /** Settles when the program is gone. */
  readonly gone: Promise<void>
  readonly #client: Client

  private constructor(
    private readonly server: StdioServer,
    private readonly sdk: McpSdk,
    private readonly transport: ProgramTransport,
    private readonly hide: (text: string) => string,
    private readonly parts: McpProcessParts,
  ) {
    // The other way starts a second process to find out what the server speaks; every one speaks this.
    this.#client = mcpClient(sdk, 'legacy')
    this.#client.onclose = () => this.#over.abort(failed('unreachable', 'The server ended.'))
    transport.onmessage = message => this.#count(message)
    this.gone = new Promise(resolve => {
      transport.onclose = resolve
    })
  }

  /**
   * Prepare a run; nothing is started yet.
   *
   * @throws McpFailure  a secret of its environment leads to nothing
   */
  static async prepare(server: StdioServer, parts: McpProcessParts): Promise<McpProcess> {
    const secrets = secretsOf(server, parts.environment)
    const hide = (text: string) =>
      Object.values(secrets).reduce((cleaned, secret) => cleaned.replaceAll(secret, '[redacted]'), text)
    createFolder(parts.folder)
    const sdk = await import('@modelcontextprotocol/client')
    const stdio = await import('@modelcontextprotocol/client/stdio')
    const transport = transportTo(sdk, stdio, {
      command: server.command,
      args: server.args,
      env: {
        ...stdio.getDefaultEnvironment(),
        ...without(stdio.DEFAULT_INHERITED_ENV_VARS),
        ...server.env,
        ...secrets,
      },
      cwd: parts.folder,
      maxBufferSize: answerBytesMax,
    })
    const { clock, log } = parts
    const lines = new ErrorLines(clock, hide, line =>
      log.info({ server: server.id, line }, 'a tool server says'),
    )
    transport.stderr?.on('data', (part: Buffer) => lines.write(part.toString()))
    transport.stderr?.on('end', () => lines.end())
    return new McpProcess(server, sdk, transport, hide, parts)
  }

  /** @param until  ends it  @throws McpFailure */
  async start(until: AbortSignal): Promise<void> {
    const { clock, log } = this.parts
    try {
      await within(clock, startTimeoutMs, signal => this.#client.connect(this.transport, { signal }), until)
      this.#client.onerror = () => queueMicrotask(() => this.#checkOpen())
      this.#rest()
    } catch (error) {
      this.#break(failed('unreachable', 'The server cannot be started.', error))
      // Not the error itself: that of a command which is not found holds all of its arguments.
      const reason = presentable(this.hide(error instanceof Error ? error.message : ''))
      log.warn({ server: this.server.id, reason }, 'a tool server did not start')
      throw this.#over.signal.reason
    }
  }

  /** Calls may begin. */
  get isUsable(): boolean {
    return !this.#isRetired && !this.#over.signal.aborted
  }

  /**
   * Ask it something.
   *
   * @param signal  nobody waits any longer
   * @throws McpFailure
   */
  async use<T>(signal: AbortSignal, ask: Ask<T>): Promise<T> {
    this.#begin()
    try {
      return await unlessAborted(ask(this.#client, signal, this.sdk), this.#over.signal)
    } catch (error) {
      if (this.#over.signal.aborted) throw this.#over.signal.reason
      if (signal.aborted) throw notInTime(error)
      throw failed('protocol_error', 'The server does not answer as an MCP server does.', error)
    } finally {
      this.#calls--
      if (this.#calls === 0) this.#rest()
    }
  }

  /** A text of the program without the secrets that it was given. */
  shown(text: string): string {
    return this.hide(text)
  }

  /** Nobody begins to call it any more, and it ends when those who wait have their answers. */
  retire(): void {
    this.#isRetired = true
    if (this.#calls === 0) this.end()
  }

  /** Have it end now. @returns when it is gone, or cannot be waited for any longer */
  end(): Promise<void> {
    this.#over.abort(failed('unreachable', 'The server was ended.'))
    this.#keepAlive()
    this.#ending ??= this.#ended()
    return this.#ending
  }

  async #ended(): Promise<void> {
    await this.#client.close()
    await this.transport.close()
    await within(this.parts.clock, endTimeoutMs, () => this.gone).catch(() => {})
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

  #rest(): void {
    if (this.#isRetired) this.end()
    else this.#keepAlive = this.parts.clock.after(idleMs, () => this.retire())
  }

  /** The client answers whatever a server asks, and reads whatever it says: both within what HTTP sessions may. */
  #count(message: JSONRPCMessage): void {
    this.#bytes += Buffer.byteLength(JSON.stringify(message))
    if ('method' in message && 'id' in message) this.#requests++
    if (this.#bytes > answerBytesMax * this.#turns) this.#break(tooLarge())
    if (this.#requests > requestsMax * this.#turns)
      this.#break(failed('protocol_error', `The server asks for more than ${requestsMax} answers.`))
  }

  /** A message that does not fit has made the transport close itself. */
  #checkOpen(): void {
    if (this.transport.pid === null) this.#break(tooLarge())
  }

  #break(failure: McpFailure): void {
    this.#over.abort(failure)
    this.end()
  }
}

function failed(code: McpFailure['code'], message: string, cause?: unknown): McpFailure {
  return new McpFailure(code, message, cause)
}

function tooLarge(): McpFailure {
  return failed('too_large', `The server sent more than ${answerBytesMax} bytes.`)
}

/** @throws McpFailure */
function secretsOf({ secretEnv }: StdioServer, environment: Environment): Record<string, string> {
  try {
    return Object.fromEntries(
      Object.entries(secretEnv).map(([name, ref]) => [name, resolveSecret(ref, environment)]),
    )
  } catch (error) {
    throw failed('credential_unavailable', 'A secret of the server leads to nothing.', error)
  }
}

/** What takes out again what programs are given without being asked. A variable that is `undefined` is not passed on. */
function without(passedOn: readonly string[]): Record<string, undefined> {
  const unwanted = passedOn.filter(name => !inherited.has(name))
  return Object.fromEntries(unwanted.map(name => [name, undefined]))
}
