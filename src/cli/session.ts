import { type Client, connect } from '../client/client.ts'
import type { Output } from './output.ts'
import type { Profile } from './profile.ts'
import type { Progress } from './progress.ts'
import { type ResolvedRuntime, resolveRuntime } from './resolve-runtime.ts'
import { plainLine } from './terminal-text.ts'
import { type WaysIn, waysIn } from './ways-in.ts'

/** One command's connection to its runtime, made at the first call. */
export class Session {
  readonly client: Client
  #runtime: Promise<ResolvedRuntime> | undefined

  constructor(
    readonly profile: Profile,
    private readonly output: Output,
    private readonly debug: boolean,
    signal: AbortSignal,
  ) {
    this.client = connect({
      baseUrl: '',
      signal,
      headers: profile.apiKey && !profile.asOperator ? { authorization: `Bearer ${profile.apiKey}` } : {},
      fetch: async (path, request) => {
        const { baseUrl, fetch } = await this.runtime()
        return fetch(baseUrl + path, request)
      },
      onIgnored: names => output.warn(`  the runtime ignored: ${plainLine(names.join(', '))}`),
    })
  }

  runtime(): Promise<ResolvedRuntime> {
    this.#runtime ??= resolveRuntime(this.profile, {
      note: line => this.output.note(line),
      voice: { level: this.debug ? 'debug' : 'silent', stream: process.stderr },
    })
    return this.#runtime
  }

  /** The runtime that was talked to; undefined when none was. */
  async met(): Promise<ResolvedRuntime | undefined> {
    return this.#runtime?.catch(() => undefined)
  }

  /** How callers sign in at the runtime; undefined where nothing says so. */
  async ways(): Promise<WaysIn | undefined> {
    return waysIn(this.profile, await this.runtime())
  }

  /**
   * Finish what is due and let the runtime go. Without `wait`, work that is due is left to the next process.
   *
   * @returns how much was left
   */
  async end(options: { wait: boolean; signal: AbortSignal; progress: Progress }): Promise<number> {
    const runtime = await this.#runtime?.catch(() => undefined)
    if (!runtime) return 0
    try {
      if (options.wait) await runtime.settle(options)
      return await runtime.pending()
    } finally {
      options.progress.end()
      await runtime.close()
    }
  }
}
