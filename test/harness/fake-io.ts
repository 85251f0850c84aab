import { resolve } from 'node:path'
import { Readable, Writable } from 'node:stream'
import type { KeyCost } from '../../src/auth/keys/token.ts'
import { systemClock } from '../../src/base/clock.ts'
import type { Io, Signals, TerminationSignal } from '../../src/cli/io.ts'
import { copyWith } from '../../src/cli/node-io.ts'
import { lowCost } from './key-cost.ts'

export interface FakeIoOptions {
  env?: Readonly<Record<string, string>>
  cwd?: string
  /** Content of stdin. */
  input?: string
  /** Cost of key derivation: low, unless processes share the store. */
  keyCost?: KeyCost
}

/** Input and output of a command line in this process. Its streams are pipes, like those of a child process. */
export class FakeIo implements Io {
  readonly stdin: NodeJS.ReadStream
  readonly stdout = new Sink() as Sink & NodeJS.WriteStream
  readonly stderr = new Sink() as Sink & NodeJS.WriteStream
  readonly env: Record<string, string | undefined>
  readonly cwd: string
  readonly script = resolve('bin/run.js')
  readonly clock = systemClock
  readonly keyCost: KeyCost
  readonly serverThreads = false
  readonly signals = new FakeSignals()
  exitStatus: number | undefined
  /** URLs that were opened. */
  readonly openedUrls: string[] = []

  constructor({ env = {}, cwd = '/', input = '', keyCost = lowCost }: FakeIoOptions = {}) {
    this.keyCost = keyCost
    this.env = { ...env }
    this.cwd = cwd
    this.stdin = Readable.from(input === '' ? [] : [Buffer.from(input)]) as NodeJS.ReadStream
  }

  setExitStatus(status: number): void {
    this.exitStatus = status
  }

  discardsStdout(): boolean {
    return false
  }

  writeNow(text: string): void {
    this.stdout.write(text)
  }

  async openBrowser(url: string): Promise<void> {
    this.openedUrls.push(url)
  }

  copyWith(command: readonly string[], text: string): Promise<void> {
    return copyWith(command, text, this.env)
  }
}

/** A pipe that stores its input and emits it as `data`. */
class Sink extends Writable {
  readonly #parts: Buffer[] = []

  override _write(part: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#parts.push(part)
    this.emit('data', part)
    done()
  }

  get text(): string {
    return Buffer.concat(this.#parts).toString('utf8')
  }
}

/** Signals sent by a test. */
class FakeSignals implements Signals {
  readonly listeners = new Set<(name: TerminationSignal) => void>()
  readonly uncaught = new Set<(error: unknown) => void>()
  readonly exits = new Set<() => void>()

  listen(listener: (name: TerminationSignal) => void): () => void {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }

  withDefaults<T>(work: () => T): T {
    return work()
  }

  raise(name: TerminationSignal): void {
    for (const listener of this.listeners) listener(name)
  }

  onUncaught(listener: (error: unknown) => void): () => void {
    this.uncaught.add(listener)
    return () => this.uncaught.delete(listener)
  }

  onExit(listener: () => void): () => void {
    this.exits.add(listener)
    return () => this.exits.delete(listener)
  }

  exit(status: number): never {
    throw new Error(`the process would end with status ${status}`)
  }
}
