import { systemClock } from '../../base/clock.ts'
import type { LocalConfig, RunningServer, ServerRuntime } from '../local.ts'

/** Time that requests in flight get to finish. */
const drainMs = 10_000

/** Callbacks for the state of a server. */
export interface RestartReporter {
  restarting(): void
  restarted(serving: Serving): void
  /** Called when a restart failed and the server continues unchanged. */
  notRestarted(error: unknown): void
}

export interface ServingParts {
  readonly config: LocalConfig
  readonly runtime: ServerRuntime
  readonly listening: RunningServer
  /** True if other machines cannot connect. */
  readonly loopback: boolean
  readonly reporter: RestartReporter
  /** Reads the current configuration. @throws the error that would prevent a start with it */
  read(): Promise<LocalConfig>
  /** Opens a runtime, in rescue mode if necessary. */
  open(config: LocalConfig): Promise<ServerRuntime>
  /** Releases the data directory. */
  release(): void
}

/**
 * A runtime that listens on a port and can be replaced by a new one. The process, the port and its lock of
 * the data directory are kept during the replacement, and a signal stops the current runtime.
 */
export class Serving {
  readonly #parts: ServingParts
  #restarting: Promise<void> | undefined
  #isEnding = false
  config: LocalConfig
  runtime: ServerRuntime

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

  /** Replaces the runtime. If the new configuration is invalid, the current runtime continues. */
  restart(): void {
    if (this.#isEnding) return
    this.#restarting ??= this.#replaceRuntime().finally(() => {
      this.#restarting = undefined
    })
  }

  async #replaceRuntime(): Promise<void> {
    const { listening, reporter, read, open } = this.#parts
    let config: LocalConfig
    try {
      config = await read()
    } catch (error) {
      return reporter.notRestarted(error)
    }
    reporter.restarting()
    await listening.drain(drainMs)
    await closeRuntime(this.runtime)
    this.runtime = await open(config)
    this.config = config
    listening.use(this.runtime.app)
    reporter.restarted(this)
  }

  /** Rejects new requests, waits for those in flight, and releases all resources. */
  async stop(): Promise<void> {
    this.#isEnding = true
    await this.#restarting
    await this.#parts.listening.close(drainMs)
    await closeRuntime(this.runtime)
    this.#parts.release()
  }
}

/** Closes a runtime. Stops waiting after {@link drainMs}. */
async function closeRuntime(runtime: ServerRuntime): Promise<void> {
  const timeout = new Promise<void>(resolve => systemClock.after(drainMs, resolve))
  await Promise.race([runtime.close(), timeout])
}
