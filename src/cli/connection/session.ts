import { TimedOut, withTimeout } from '../../base/deadline.ts'
import { type Client, openClient } from '../../client/client.ts'
import type { Fetch, Incoming, Outgoing } from '../../client/fetch.ts'
import { Unreachable } from '../../client/unreachable.ts'
import { auth, type DeviceTokens } from '../../contract/auth.ts'
import { type Chosen, chooseCredential } from '../credentials/credential.ts'
import { KeptTokens } from '../credentials/kept-tokens.ts'
import { keychainOf } from '../credentials/keychains.ts'
import { aloneWithLogins } from '../credentials/lock.ts'
import { findLogin, type StoredLogin } from '../credentials/logins.ts'
import { isCi } from '../environment.ts'
import type { Refusal } from '../folder/decide.ts'
import type { Io } from '../io.ts'
import { refuseClearText } from '../settings/address.ts'
import { loginLine } from '../settings/login-line.ts'
import type { Profile } from '../settings/profile.ts'
import type { Output } from '../terminal/output.ts'
import type { Progress } from '../terminal/progress.ts'
import { plainLine } from '../terminal/terminal-text.ts'
import {
  isCurrent,
  type ResolvedRuntime,
  runtimeElsewhere,
  runtimeHere,
  type Telling,
} from './resolve-runtime.ts'
import { timely } from './timely.ts'
import { type WaysIn, waysIn } from './ways-in.ts'

const renewalTimeoutMs = 30_000
/** Field that commands always send, and that older runtimes may ignore. */
const fieldOfCommands = 'includeCoverage'

/** One command's connection to its runtime, made at the first call. */
export class Session {
  readonly client: Client
  /** The same runtime, to which no credential is sent. */
  readonly stranger: Client
  #runtime: Promise<ResolvedRuntime> | undefined
  #elsewhere: Promise<ResolvedRuntime | undefined> | undefined
  #here: Promise<ResolvedRuntime> | undefined
  /** Earlier runtimes. Calls to them can still be in progress. */
  readonly #replaced = new Set<ResolvedRuntime>()
  #credential: Chosen | undefined
  #kept: KeptTokens | undefined

  constructor(
    readonly profile: Profile,
    readonly io: Io,
    private readonly output: Output,
    private readonly debug: boolean,
    private readonly signal: AbortSignal,
    private readonly refusal?: Refusal,
  ) {
    this.client = this.#connect((path, request) => this.#send(path, request))
    this.stranger = this.#connect((path, request) => this.#deliver(path, request))
  }

  /** The same runtime, to which this token is sent. */
  bearing(token: string): Client {
    return this.#connect((path, request) => this.#deliver(path, withBearer(request, token)))
  }

  /**
   * What this command sends to say who is calling.
   *
   * @throws UsageError  `--credential` names what is not there
   */
  get credential(): Chosen {
    this.#credential ??= chooseCredential(this.profile, findLogin(this.profile))
    return this.#credential
  }

  /** The tokens of the login that is sent; undefined where none is. */
  get keptTokens(): KeptTokens | undefined {
    const { used } = this.credential
    if (used?.from === 'wb login') this.#kept ??= this.#keptTokensOf(used.login)
    return this.#kept
  }

  /** @throws KeychainUnavailable, UsageError, WbError unauthorized */
  async token(): Promise<string | undefined> {
    if (this.refusal?.namesRuntime) throw this.refusal.error
    const { used } = this.credential
    return used?.from === 'WB_API_KEY' ? used.token : this.keptTokens?.token()
  }

  /** @throws what the files of the working directory give as a reason to go nowhere */
  runtime(): Promise<ResolvedRuntime> {
    this.#runtime ??= this.#open()
    return this.#runtime
  }

  /** The same where it is another process; where it would be this one, nothing is opened. */
  elsewhere(): Promise<ResolvedRuntime | undefined> {
    this.#elsewhere ??= runtimeElsewhere(this.profile, this.io, this.#telling)
    return this.#elsewhere
  }

  /**
   * Lets the next call look for the runtime again if a `wb serve` has started, ended or restarted in the meantime. For
   * commands that can run longer than the runtime.
   */
  async rediscover(): Promise<void> {
    const before = this.#runtime
    const met = await this.met()
    if (met && (await isCurrent(this.profile, met))) return
    if (this.#runtime !== before) return
    if (met) this.#replaced.add(met)
    this.#runtime = undefined
    this.#elsewhere = undefined
  }

  /** The runtime that was talked to; undefined when none was. */
  async met(): Promise<ResolvedRuntime | undefined> {
    return this.#runtime?.catch(() => undefined)
  }

  /** How callers sign in at the runtime; undefined where nothing says so. */
  async ways(): Promise<WaysIn | undefined> {
    return waysIn(this.profile, this.io, await this.runtime())
  }

  /**
   * Finish what is due and let the runtime go. Without `wait`, work that is due is left to the next process.
   *
   * @returns how much was left
   */
  async end(options: { wait: boolean; signal: AbortSignal; progress: Progress }): Promise<number> {
    const runtime = await (this.#runtime ?? this.#elsewhere)?.catch(() => undefined)
    const used = new Set([...(runtime ? [runtime] : []), ...this.#replaced])
    try {
      if (options.wait) await runtime?.settle(options)
      return (await runtime?.pending()) ?? 0
    } finally {
      options.progress.end()
      for (const one of used) await one.close()
    }
  }

  async #open(): Promise<ResolvedRuntime> {
    if (this.refusal) throw this.refusal.error
    const elsewhere = await this.elsewhere()
    if (elsewhere) return elsewhere
    this.#here ??= runtimeHere(this.profile, this.io, this.#telling)
    this.#here.catch(() => {
      this.#here = undefined
    })
    return this.#here
  }

  get #telling(): Telling {
    return {
      note: line => this.output.note(line),
      voice: { level: this.debug ? 'debug' : 'silent', stream: this.io.stderr },
      wire: this.debug ? block => this.output.trace(block) : undefined,
      otherVersion: this.output.json || isCi(this.io.env) ? undefined : line => this.output.note(line),
    }
  }

  #connect(fetch: Fetch): Client {
    return openClient({
      baseUrl: '',
      signal: this.signal,
      onIgnored: names => this.#reportIgnored(names.filter(name => name !== fieldOfCommands)),
      fetch,
    })
  }

  #reportIgnored(names: readonly string[]): void {
    if (names.length > 0) this.output.warn(`  the runtime ignored: ${plainLine(names.join(', '))}`)
  }

  /** With the credential. A login that the runtime does not accept any more is renewed once, and the request repeated. */
  async #send(path: string, request: Outgoing): Promise<Incoming> {
    const [, token] = await Promise.all([this.runtime(), this.token()])
    if (token === undefined) return this.#deliver(path, request)
    const answer = await this.#deliver(path, withBearer(request, token))
    if (answer.status !== 401 || !this.#kept || !isRepeatable(request)) return answer
    const other = await this.#kept.token(token)
    return other === token ? answer : this.#deliver(path, withBearer(request, other))
  }

  #deliver: Fetch = async (path, request) => {
    const { baseUrl, fetch } = await this.runtime()
    return (path.startsWith('/auth/') ? timely(fetch) : fetch)(baseUrl + path, request)
  }

  /** It is not called off with the command: what the provider has handed out already would be lost, and the login with it. */
  async #renew(refreshToken: string): Promise<DeviceTokens> {
    const body = { refresh_token: refreshToken }
    const ask = (signal: AbortSignal) => this.stranger.call(auth.deviceRefresh, { body }, { signal })
    try {
      return await withTimeout(this.io.clock, renewalTimeoutMs, ask)
    } catch (error) {
      if (!(error instanceof TimedOut)) throw error
      throw new Unreachable('the runtime does not renew this login in time', 'Try again.', { cause: error })
    }
  }

  #keptTokensOf({ driver, account }: StoredLogin): KeptTokens {
    const { url, urlFrom, insecureHttp } = this.profile
    if (url !== undefined && !insecureHttp) refuseClearText('the login', { url, urlFrom }, { isBound: true })
    return new KeptTokens({
      keychain: keychainOf(this.profile, driver),
      account,
      loginLine: loginLine(this.profile),
      clock: this.io.clock,
      alone: work => aloneWithLogins(this.profile, this.signal, work),
      renew: refreshToken => this.#renew(refreshToken),
    })
  }
}

function withBearer(request: Outgoing, token: string): Outgoing {
  return { ...request, headers: { ...request.headers, authorization: `Bearer ${token}` } }
}

function isRepeatable({ body }: Outgoing): boolean {
  return body === undefined || typeof body === 'string'
}
