import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { PassThrough, type Readable, type Stream, type Writable } from 'node:stream'
import { setTimeout as wait } from 'node:timers/promises'
import type { JSONRPCMessage, ReadBuffer, Transport } from '@modelcontextprotocol/client'
import { pause } from '../../base/pause.ts'
import type { McpSdk } from './client.ts'

type StdioSdk = typeof import('@modelcontextprotocol/client/stdio')

/** Transport to a program that uses MCP on its standard input and output. */
export interface ProgramTransport extends Transport {
  readonly stderr: Stream | null
  /** Process ID; null before the program starts, and after `close` was called or the program has ended. */
  readonly pid: number | null
}

interface Program {
  readonly command: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  /** Maximum size of one message, in bytes. */
  readonly maxBufferSize: number
}

/** Time to wait after each step of ending a program. The steps are closing its input, SIGTERM and SIGKILL. */
const stepMs = 2_000
/** Time to wait for the child processes that a program left behind. It is shorter, because no client uses them. */
const childExitMs = 1_000
const pollMs = 50

/**
 * Creates the transport to a program, but does not start the program. On Windows, which has no process groups, child
 * processes of the program are not ended.
 */
export function createProgramTransport(sdk: McpSdk, stdio: StdioSdk, program: Program): ProgramTransport {
  if (process.platform !== 'win32') return new ProgramGroup(program, sdk)
  const { command, args, env, cwd, maxBufferSize } = program
  return new stdio.StdioClientTransport({
    command,
    args: [...args],
    env: env as Record<string, string>,
    cwd,
    stderr: 'pipe',
    maxBufferSize,
  })
}

const exitHandlers = new Set<() => void>()
const runExitHandlers = () => {
  for (const handler of exitHandlers) handler()
}

/**
 * Adds or removes a function that is called when this process exits. Such functions end programs in other process
 * groups, because Ctrl-C does not reach them.
 */
function setExitHandler(handler: () => void, isAdded: boolean): void {
  process.off('exit', runExitHandlers)
  if (isAdded) exitHandlers.add(handler)
  else exitHandlers.delete(handler)
  if (exitHandlers.size > 0) process.on('exit', runExitHandlers)
}

/**
 * A transport to a program in a new process group, for POSIX. Ends the whole group, so that a wrapper such as `sh -c`
 * or `npx` leaves no child processes behind.
 */
class ProgramGroup implements ProgramTransport {
  onclose?: () => void
  onerror?: (error: Error) => void
  onmessage?: (message: JSONRPCMessage) => void
  readonly stderr = new PassThrough()
  readonly #buffer: ReadBuffer
  #child: ChildProcessByStdio<Writable, Readable, Readable> | undefined
  #ending: Promise<void> | undefined
  #isKilled = false
  /** True if the group has no processes left. The system can then reuse the ID of the group. */
  #isEmpty = false
  /** Resolves when all buffered input was written; undefined if nothing is buffered. */
  #drained: Promise<void> | undefined
  /** Aborts when the output of the program is closed. */
  readonly #closed = new AbortController()

  constructor(
    private readonly program: Program,
    private readonly sdk: McpSdk,
  ) {
    this.#buffer = new sdk.ReadBuffer({ maxBufferSize: program.maxBufferSize })
  }

  get pid(): number | null {
    return this.#ending || this.#closed.signal.aborted ? null : (this.#child?.pid ?? null)
  }

  /** @throws any error that prevents the start of the program */
  start(): Promise<void> {
    const { command, args, env, cwd } = this.program
    const child = spawn(command, args, { env, cwd, stdio: ['pipe', 'pipe', 'pipe'], detached: true })
    this.#child = child
    const fail = (error: Error) => this.onerror?.(error)
    child.stdin.on('error', fail)
    child.stdout.on('error', fail)
    child.stdout.on('data', (part: Buffer) => this.#read(part))
    child.stderr.pipe(this.stderr)
    child.on('exit', () => {
      this.#isEmpty = !this.#signal(0)
    })
    child.on('close', () => this.#endChildren())
    return new Promise((resolve, reject) => {
      child.on('spawn', () => {
        setExitHandler(this.#kill, true)
        resolve()
      })
      child.on('error', error => {
        reject(error)
        fail(error)
      })
    })
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const { stdin } = this.#child!
    if (stdin.write(this.sdk.serializeMessage(message))) return
    this.#drained ??= new Promise<void>(resolve => stdin.once('drain', resolve)).finally(() => {
      this.#drained = undefined
    })
    await this.#drained
  }

  close(): Promise<void> {
    this.#ending ??= this.#end()
    return this.#ending
  }

  async #end(): Promise<void> {
    this.#child?.stdin.end()
    for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
      if (this.#child) await pause(stepMs, this.#closed.signal)
      if (this.#closed.signal.aborted) return
      this.#signal(signal)
    }
  }

  /** Ends the child processes that the program left behind. */
  async #endChildren(): Promise<void> {
    this.#closed.abort()
    if (!this.#isKilled && this.#signal('SIGTERM')) {
      for (let waited = 0; waited < childExitMs && this.#signal(0); waited += pollMs) await wait(pollMs)
      this.#signal('SIGKILL')
    }
    setExitHandler(this.#kill, false)
    this.onclose?.()
  }

  readonly #kill = () => void this.#signal('SIGKILL')

  /**
   * Sends a signal to the group. Returns false if the group has no processes.
   */
  #signal(signal: 'SIGTERM' | 'SIGKILL' | 0): boolean {
    const pid = this.#child?.pid
    if (pid === undefined || this.#isEmpty) return false
    this.#isKilled ||= signal === 'SIGKILL'
    try {
      process.kill(-pid, signal)
      return true
    } catch {
      return false
    }
  }

  #read(part: Buffer): void {
    try {
      this.#buffer.append(part)
      for (let hasMore = true; hasMore; ) hasMore = this.#readMessage()
    } catch (error) {
      this.#reportError(error)
      void this.close()
    }
  }

  /** Reads one line. If the line is not a message, reports an error. Returns false if there are no more lines. */
  #readMessage(): boolean {
    try {
      const message = this.#buffer.readMessage()
      if (message === null) return false
      this.onmessage?.(message)
    } catch (error) {
      this.#reportError(error)
    }
    return true
  }

  #reportError(error: unknown): void {
    this.onerror?.(error instanceof Error ? error : new Error(String(error)))
  }
}
