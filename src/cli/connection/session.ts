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
/** Request field that commands always send. If an older runtime ignores it, the user does not need a warning. */
const alwaysSentField = 'includeCoverage'
const rerankingProblem = 'the reranking service failed, or this runtime cannot use it'

/** The connection of one command to its runtime. The first request opens the connection. */
export class Session {
  readonly client: Client
  /** Client that sends no credential. */
  readonly anonymousClient: Client
  #runtime: Promise<ResolvedRuntime> | undefined
  #remoteRuntime: Promise<ResolvedRuntime | undefined> | undefined
  #inProcessRuntime: Promise<ResolvedRuntime> | undefined
  /** Runtimes that {@link rediscover} replaced. Requests to them can still be in progress. */
  readonly #replacedRuntimes = new Set<ResolvedRuntime>()
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
    this.client = this.#openClient((path, request) => this.#sendAuthenticated(path, request))
    this.anonymousClient = this.#openClient((path, request) => this.#sendUnchanged(path, request))
  }

  /** Returns a client that sends this token instead of the credential. */
  clientWithToken(token: string): Client {
    return this.#openClient((path, request) => this.#sendUnchanged(path, withBearer(request, token)))
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
    this.#remoteRuntime ??= findRemoteRuntime(this.profile, this.io, this.#reporter)
    return this.#remoteRuntime
  }

  /**
   * Makes the next request search for the runtime again if a `wb serve` has started, ended or restarted in the
   * meantime. For commands that can run longer than the runtime.
   */
  async rediscover(): Promise<void> {
    const previous = this.#runtime
    const current = await this.openedRuntime()
    if (current && (await isCurrentRuntime(this.profile, current))) return
    if (this.#runtime !== previous) return
    if (current) this.#replacedRuntimes.add(current)
    this.#runtime = undefined
    this.#remoteRuntime = undefined
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
    const runtime = await (this.#runtime ?? this.#remoteRuntime)?.catch(() => undefined)
    const openRuntimes = new Set([...(runtime ? [runtime] : []), ...this.#replacedRuntimes])
    try {
      if (options.wait) await runtime?.settle(options)
      return (await runtime?.pending()) ?? 0
    } finally {
      options.progress.end()
      for (const openRuntime of openRuntimes) await openRuntime.close()
    }
  }

  async #open(): Promise<ResolvedRuntime> {
    if (this.refusal) throw this.refusal.error
    const remote = await this.remoteRuntime()
    if (remote) return remote
    this.#inProcessRuntime ??= openInProcessRuntime(this.profile, this.io, this.#reporter)
    this.#inProcessRuntime.catch(() => {
      this.#inProcessRuntime = undefined
    })
    return this.#inProcessRuntime
  }

  get #reporter(): RuntimeReporter {
    return {
      note: line => this.output.note(line),
      logSettings: { level: this.debug ? 'debug' : 'silent', stream: this.io.stderr },
      onRequest: this.debug ? entry => this.output.trace(entry) : undefined,
      onVersionMismatch: this.output.json || isCi(this.io.env) ? undefined : line => this.output.note(line),
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
    const described = names.map(name => (name === 'rerank' ? `${name} (${rerankingProblem})` : name))
    if (names.length > 0) this.output.warn(`  the runtime ignored: ${plainLine(described.join(', '))}`)
  }

  /**
   * Sends a request with the credential. If the runtime rejects the token of a login, renews the token and repeats
   * the request once.
   */
  async #sendAuthenticated(path: string, request: OutgoingRequest): Promise<IncomingResponse> {
    const [, token] = await Promise.all([this.runtime(), this.token()])
    if (token === undefined) return this.#sendUnchanged(path, request)
    const response = await this.#sendUnchanged(path, withBearer(request, token))
    if (response.status !== 401 || !this.#tokenStore || !isRepeatable(request)) return response
    const renewed = await this.#tokenStore.token(token)
    return renewed === token ? response : this.#sendUnchanged(path, withBearer(request, renewed))
  }

  /** Sends a request without adding a credential. Requests for signing in have a time limit. */
  #sendUnchanged: Fetch = async (path, request) => {
    const { baseUrl, fetch } = await this.runtime()
    return (path.startsWith('/auth/') ? withResponseTimeout(fetch) : fetch)(baseUrl + path, request)
  }

  /**
   * Renews the tokens of a login. Aborting the command does not abort the renewal, because the provider may already
   * have replaced the old refresh token.
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
