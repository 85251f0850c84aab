import { TimedOut, withTimeout } from '../../base/deadline.ts'
import { type Client, openClient } from '../../client/client.ts'
import type { Fetch, IncomingResponse, OutgoingRequest } from '../../client/fetch.ts'
import { Unreachable } from '../../client/unreachable.ts'
import { auth, type DeviceTokens } from '../../contract/auth.ts'
import { type CredentialSelection, chooseCredential } from '../credentials/credential.ts'
import { openUserKeychain } from '../credentials/keychains.ts'
import { findLogin, type StoredLogin } from '../credentials/logins.ts'
import { withLoginsLock } from '../credentials/logins-lock.ts'
import { TokenStore } from '../credentials/token-store.ts'
import { isCi } from '../environment.ts'
import type { Io } from '../io.ts'
import { requireEncryption } from '../settings/address.ts'
import { loginCommand } from '../settings/login-command.ts'
import type { Profile } from '../settings/profile.ts'
import type { Output } from '../terminal/output.ts'
import type { Progress } from '../terminal/progress.ts'
import { plainLine } from '../terminal/terminal-text.ts'
import type { TrustRefusal } from '../trust/folder-settings.ts'
import { findAuthMethods, type RuntimeAuthMethods } from './auth-methods.ts'
import {
  findRemoteRuntime,
  isCurrentRuntime,
  openInProcessRuntime,
  type ResolvedRuntime,
  type RuntimeReporter,
} from './resolve-runtime.ts'
import { withResponseTimeout } from './response-timeout.ts'

const renewalTimeoutMs = 30_000
/** Field that commands always send. Older runtimes may ignore it, which is not reported. */
const alwaysSentField = 'includeCoverage'

/** The connection of one command to its runtime. It is opened at the first call. */
export class Session {
  readonly client: Client
  /** Client that sends no credential. */
  readonly anonymousClient: Client
  #runtime: Promise<ResolvedRuntime> | undefined
  #remote: Promise<ResolvedRuntime | undefined> | undefined
  #inProcess: Promise<ResolvedRuntime> | undefined
  /** Earlier runtimes. Calls to them can still be in progress. */
  readonly #replaced = new Set<ResolvedRuntime>()
  #credential: CredentialSelection | undefined
  #tokenStore: TokenStore | undefined

  constructor(
    readonly profile: Profile,
    readonly io: Io,
    private readonly output: Output,
    private readonly debug: boolean,
    private readonly signal: AbortSignal,
    private readonly refusal?: TrustRefusal,
  ) {
    this.client = this.#openClient((path, request) => this.#send(path, request))
    this.anonymousClient = this.#openClient((path, request) => this.#deliver(path, request))
  }

  /** Returns a client that sends the given token. */
  clientWithToken(token: string): Client {
    return this.#openClient((path, request) => this.#deliver(path, withBearer(request, token)))
  }

  /** Returns the credential to send. @throws UsageError  there is no credential of the type that `--credential` selects */
  get credential(): CredentialSelection {
    this.#credential ??= chooseCredential(this.profile, findLogin(this.profile))
    return this.#credential
  }

  /** Returns the token store of the login in use; undefined without a login. */
  get tokenStore(): TokenStore | undefined {
    const { used } = this.credential
    if (used?.from === 'wb login') this.#tokenStore ??= this.#openTokenStore(used.login)
    return this.#tokenStore
  }

  /**
   * Returns the token to send; undefined without a credential.
   *
   * @throws KeychainUnavailable, UsageError, WbError unauthorized
   */
  async token(): Promise<string | undefined> {
    if (this.refusal?.selectsRuntime) throw this.refusal.error
    const { used } = this.credential
    return used?.from === 'WB_API_KEY' ? used.token : this.tokenStore?.token()
  }

  /**
   * Returns the runtime, and opens it at the first call.
   *
   * @throws UsageError  the runtime or its settings depend on untrusted files in the working directory
   */
  runtime(): Promise<ResolvedRuntime> {
    this.#runtime ??= this.#open()
    return this.#runtime
  }

  /** Returns the runtime if it is in another process. Does not open a runtime in this process. */
  remoteRuntime(): Promise<ResolvedRuntime | undefined> {
    this.#remote ??= findRemoteRuntime(this.profile, this.io, this.#reporter)
    return this.#remote
  }

  /**
   * Makes the next call look for the runtime again if a `wb serve` has started, ended or restarted in the meantime. For
   * commands that can run longer than the runtime.
   */
  async rediscover(): Promise<void> {
    const before = this.#runtime
    const current = await this.openedRuntime()
    if (current && (await isCurrentRuntime(this.profile, current))) return
    if (this.#runtime !== before) return
    if (current) this.#replaced.add(current)
    this.#runtime = undefined
    this.#remote = undefined
  }

  /** Returns the runtime if it has been opened, else undefined. */
  async openedRuntime(): Promise<ResolvedRuntime | undefined> {
    return this.#runtime?.catch(() => undefined)
  }

  /** Returns the authentication methods of the runtime; undefined if unknown. */
  async authMethods(): Promise<RuntimeAuthMethods | undefined> {
    return findAuthMethods(this.profile, this.io, await this.runtime())
  }

  /**
   * Finishes background work and closes the runtime. Without `wait`, the work is left for the next process.
   *
   * @returns number of remaining tasks
   */
  async end(options: { wait: boolean; signal: AbortSignal; progress: Progress }): Promise<number> {
    const runtime = await (this.#runtime ?? this.#remote)?.catch(() => undefined)
    const used = new Set([...(runtime ? [runtime] : []), ...this.#replaced])
    try {
      if (options.wait) await runtime?.settle(options)
      return (await runtime?.pending()) ?? 0
    } finally {
      options.progress.end()
      for (const openRuntime of used) await openRuntime.close()
    }
  }

  async #open(): Promise<ResolvedRuntime> {
    if (this.refusal) throw this.refusal.error
    const remote = await this.remoteRuntime()
    if (remote) return remote
    this.#inProcess ??= openInProcessRuntime(this.profile, this.io, this.#reporter)
    this.#inProcess.catch(() => {
      this.#inProcess = undefined
    })
    return this.#inProcess
  }

  get #reporter(): RuntimeReporter {
    return {
      note: line => this.output.note(line),
      logSettings: { level: this.debug ? 'debug' : 'silent', stream: this.io.stderr },
      onRequest: this.debug ? block => this.output.trace(block) : undefined,
      onOtherVersion: this.output.json || isCi(this.io.env) ? undefined : line => this.output.note(line),
    }
  }

  #openClient(fetch: Fetch): Client {
    return openClient({
      baseUrl: '',
      signal: this.signal,
      onIgnored: names => this.#reportIgnored(names.filter(name => name !== alwaysSentField)),
      fetch,
    })
  }

  #reportIgnored(names: readonly string[]): void {
    if (names.length > 0) this.output.warn(`  the runtime ignored: ${plainLine(names.join(', '))}`)
  }

  /**
   * Sends a request with the credential. If the runtime rejects a login, renews the login and repeats the
   * request once.
   */
  async #send(path: string, request: OutgoingRequest): Promise<IncomingResponse> {
    const [, token] = await Promise.all([this.runtime(), this.token()])
    if (token === undefined) return this.#deliver(path, request)
    const response = await this.#deliver(path, withBearer(request, token))
    if (response.status !== 401 || !this.#tokenStore || !isRepeatable(request)) return response
    const renewed = await this.#tokenStore.token(token)
    return renewed === token ? response : this.#deliver(path, withBearer(request, renewed))
  }

  #deliver: Fetch = async (path, request) => {
    const { baseUrl, fetch } = await this.runtime()
    return (path.startsWith('/auth/') ? withResponseTimeout(fetch) : fetch)(baseUrl + path, request)
  }

  /**
   * Renews a login. Aborting the command does not abort the renewal, because the provider may already have
   * replaced the old token.
   */
  async #renew(refreshToken: string): Promise<DeviceTokens> {
    const body = { refresh_token: refreshToken }
    const sendRefresh = (signal: AbortSignal) =>
      this.anonymousClient.call(auth.deviceRefresh, { body }, { signal })
    try {
      return await withTimeout(this.io.clock, renewalTimeoutMs, sendRefresh)
    } catch (error) {
      if (!(error instanceof TimedOut)) throw error
      throw new Unreachable('the runtime did not renew this login in time', 'Try again.', { cause: error })
    }
  }

  #openTokenStore({ driver, account }: StoredLogin): TokenStore {
    const { url, urlSource, insecureHttp } = this.profile
    if (url !== undefined && !insecureHttp)
      requireEncryption('the login', { url, urlSource }, { isBound: true })
    return new TokenStore({
      keychain: openUserKeychain(this.profile, driver),
      account,
      loginCommand: loginCommand(this.profile),
      clock: this.io.clock,
      withLock: work => withLoginsLock(this.profile, this.signal, work),
      renew: refreshToken => this.#renew(refreshToken),
    })
  }
}

function withBearer(request: OutgoingRequest, token: string): OutgoingRequest {
  return { ...request, headers: { ...request.headers, authorization: `Bearer ${token}` } }
}

function isRepeatable({ body }: OutgoingRequest): boolean {
  return body === undefined || typeof body === 'string'
}
