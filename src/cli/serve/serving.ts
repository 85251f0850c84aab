import { systemClock } from '../../base/clock.ts'
import type { Listening, LocalConfig, Served } from '../local.ts'

/** Requests in flight are given this long to finish. */
const drainMs = 10_000

/** What is said while a server serves. */
export interface Told {
  restarting(): void
  restarted(serving: Serving): void
  /** The server goes on as it was. */
  notRestarted(error: unknown): void
}

export interface ServingParts {
  readonly config: LocalConfig
  readonly runtime: Served
  readonly listening: Listening
  /** No other machine can connect. */
  readonly loopback: boolean
  readonly told: Told
  /** The configuration as it is now. @throws what would stop a start with it */
  read(): Promise<LocalConfig>
  /** A runtime to go on with, in rescue mode if need be. */
  open(config: LocalConfig): Promise<Served>
  /** Let go of the data directory. */
  release(): void
}

/**
 * A runtime that answers on a port, and is exchanged for another one on request. The process, its lock of the data
 * directory and the port stay: nobody else gets them in between, and a signal ends whatever is there.
 */
export class Serving {
  readonly #parts: ServingParts
  #restarting: Promise<void> | undefined
  #isEnding = false
  config: LocalConfig
  runtime: Served

  constructor(parts: ServingParts) {
    this.#parts = parts
    this.config = parts.config
    this.runtime = parts.runtime
  }

  get url(): string {
    return this.#parts.listening.url
  }
  get loopback(): boolean {
    return this.#parts.loopback
  }

  /** Open the runtime anew. Where the new configuration would not start, all stays as it is. */
  restart(): void {
    if (this.#isEnding) return
    this.#restarting ??= this.#exchange().finally(() => {
      this.#restarting = undefined
    })
  }

  async #exchange(): Promise<void> {
    const { listening, told, read, open } = this.#parts
    let config: LocalConfig
    try {
      config = await read()
    } catch (error) {
      return told.notRestarted(error)
    }
    told.restarting()
    await listening.drain(drainMs)
    await closed(this.runtime)
    this.runtime = await open(config)
    this.config = config
    listening.use(this.runtime.app)
    told.restarted(this)
  }

  /** Refuse new requests, finish those in flight, and let go of everything. */
  async stop(): Promise<void> {
    this.#isEnding = true
    await this.#restarting
    await this.#parts.listening.close(drainMs)
    await closed(this.runtime)
    this.#parts.release()
  }
}

/** Let a runtime go; one that takes too long goes on by itself. */
async function closed(runtime: Served): Promise<void> {
  const late = new Promise<void>(resolve => systemClock.after(drainMs, resolve))
  await Promise.race([runtime.close(), late])
}
