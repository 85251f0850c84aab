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
  readonly listener: RunningServer
  /** True if the server listens on a loopback address, so that other machines cannot connect. */
  readonly loopback: boolean
  readonly reporter: RestartReporter
  /** Reads the configuration again. @throws the error that prevents a server from starting with it */
  readConfig(): Promise<LocalConfig>
  /** Opens a runtime, in rescue mode if necessary. */
  openRuntime(config: LocalConfig): Promise<ServerRuntime>
  /** Releases the lock of the data directory, and stops catching exceptions. Called after the server has stopped. */
  release(): void
}

/**
 * A server whose runtime can be replaced with a new one. The process keeps the port and the lock of the data directory
 * during the replacement.
 */
export class RestartableServer {
  readonly #options: RestartableServerOptions
  #restarting: Promise<void> | undefined
  #isStopping = false
  config: LocalConfig
  runtime: ServerRuntime

  constructor(options: RestartableServerOptions) {
    this.#options = options
    this.config = options.config
    this.runtime = options.runtime
  }

  get url(): string {
    return this.#options.listener.url
  }
  get loopback(): boolean {
    return this.#options.loopback
  }

  /** Replaces the runtime in the background. If the new configuration is invalid, the current runtime continues. */
  restart(): void {
    if (this.#isStopping) return
    this.#restarting ??= this.#replaceRuntime().finally(() => {
      this.#restarting = undefined
    })
  }

  async #replaceRuntime(): Promise<void> {
    const { listener, reporter, readConfig, openRuntime } = this.#options
    let config: LocalConfig
    try {
      config = await readConfig()
    } catch (error) {
      return reporter.notRestarted(error)
    }
    reporter.restarting()
    await listener.drain(drainMs)
    await closeRuntime(this.runtime)
    this.runtime = await openRuntime(config)
    this.config = config
    listener.replaceApp(this.runtime.app)
    reporter.restarted(this)
  }

  /** Rejects new requests, waits for those in progress, and releases all resources. */
  async stop(): Promise<void> {
    this.#isStopping = true
    await this.#restarting
    await this.#options.listener.close(drainMs)
    await closeRuntime(this.runtime)
    this.#options.release()
  }
}

/** Closes a runtime. Stops waiting after {@link drainMs}. */
async function closeRuntime(runtime: ServerRuntime): Promise<void> {
  const timeout = new Promise<void>(resolve => systemClock.after(drainMs, resolve))
  await Promise.race([runtime.close(), timeout])
}
