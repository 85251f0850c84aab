import { systemClock } from '../../base/clock.ts'
import type { LocalConfig, RunningServer, ServerRuntime } from '../local.ts'

/** Maximum time to wait for requests in progress. */
const drainMs = 10_000

/** Callbacks for the restarts of a server. */
export interface RestartReporter {
  restarting(): void
  restarted(server: RestartableServer): void
  /** Called when a restart failed and the server continues unchanged. */
  notRestarted(error: unknown): void
}

export interface RestartableServerOptions {
  readonly config: LocalConfig
  readonly runtime: ServerRuntime
  readonly listening: RunningServer
  /** True if the server listens on a loopback address, so that other machines cannot connect. */
  readonly loopback: boolean
  readonly reporter: RestartReporter
  /** Reads the configuration again. @throws the error that prevents a server from starting with it */
  read(): Promise<LocalConfig>
  /** Opens a runtime, in rescue mode if necessary. */
  open(config: LocalConfig): Promise<ServerRuntime>
  /** Releases the lock of the data directory. */
  release(): void
}

/**
 * A server on a port whose runtime can be replaced by a new one. The process keeps the port and the lock of the data
 * directory during the replacement.
 */
export class RestartableServer {
  readonly #parts: RestartableServerOptions
  #restarting: Promise<void> | undefined
  #isEnding = false
  config: LocalConfig
  runtime: ServerRuntime

  constructor(parts: RestartableServerOptions) {
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

  /** Replaces the runtime in the background. If the new configuration is invalid, the current runtime continues. */
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
    listening.replaceApp(this.runtime.app)
    reporter.restarted(this)
  }

  /** Rejects new requests, waits for those in progress, and releases all resources. */
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
