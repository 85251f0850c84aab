import type { Caller } from '../access/caller.ts'
import { type AuthContext, subjectName } from '../access/subject.ts'
import { type Clock, timestamp } from '../base/clock.ts'
import { randomHex } from '../base/id.ts'
import type { Log } from '../base/log.ts'
import { isLoopback } from '../base/loopback.ts'
import { pause } from '../base/pause.ts'
import { WbError } from '../contract/errors.ts'
import type { McpSignIn, PendingSignIn, SignInFinish, SignInStart } from '../contract/mcp-servers.ts'
import { McpFailure } from '../models/mcp/client.ts'
import type { McpAccessTokens } from '../models/mcp/http.ts'
import type {
  AuthorizationContext,
  GrantedTokens,
  McpAuthorization,
  PendingAuthorization,
} from '../models/mcp/mcp-authorization.ts'
import { changeRow } from '../storage/change-row.ts'
import type { RowStore, Write } from '../storage/rows.ts'
import { type McpServerRow, type McpSignInRow, tables } from '../storage/tables.ts'

/** An MCP server, with the access tokens of the caller if callers sign in to the server. */
export type CallableServer = McpServerRow & { readonly accessTokens?: McpAccessTokens }

export interface McpSignInsDependencies {
  readonly rows: RowStore
  readonly clock: Clock
  readonly log: Log
  /** Encrypts and decrypts strings. `open` returns undefined if the value was encrypted for another purpose. */
  readonly seal: {
    seal(purpose: string, text: string): string
    open(purpose: string, value: string): string | undefined
  }
  readonly authorization: Pick<McpAuthorization, 'start' | 'finish' | 'refresh' | 'revoke'>
  /** True if callers are not authenticated and only this machine can connect, so all callers are the same user. */
  readonly isSingleUser: boolean
  readonly publicOrigin: string | null
}

/** The encrypted part of a stored sign-in. */
interface SealedGrant {
  readonly context: AuthorizationContext
  readonly accessToken: string
  readonly refreshToken: string | null
}

interface PendingMcpSignIn {
  readonly subject: string
  readonly purpose: string
  readonly expiresAtMs: number
  readonly authorization: PendingAuthorization
}

interface StoredSignIn {
  readonly row: McpSignInRow
  readonly version: number
  readonly grant: SealedGrant
}

const pendingTtlMs = 600_000
/** Maximum number of pending sign-ins per subject. An additional sign-in replaces the oldest. */
const pendingPerSubjectMax = 8
/** Maximum number of pending sign-ins. An additional sign-in replaces the oldest. */
const pendingMax = 1_024
/** Minimum remaining lifetime of a token that is sent. A token with less is refreshed first. */
const refreshAheadMs = 10_000
/**
 * Duration of the lease that a process takes for a refresh. Longer than a refresh can take, but short enough to repeat
 * an abandoned refresh soon.
 */
const refreshLeaseMs = 30_000
const leasePollMs = 100

/**
 * Sign-ins of callers to MCP servers, by workspace, server and subject. A token is sent only to the server that it was
 * granted for.
 *
 * @see docs/tool-servers.md#sign-in-as-yourself, docs/security.md#rule-14
 */
export class McpSignIns {
  /** Pending sign-ins by OAuth state, oldest first. */
  readonly #pending = new Map<string, PendingMcpSignIn>()
  /** Running refreshes by row key. */
  readonly #refreshing = new Map<string, Promise<string | undefined>>()

  constructor(private readonly deps: McpSignInsDependencies) {}

  /**
   * Starts a sign-in.
   *
   * @throws validation_error  the redirect URI is neither a URL of this machine nor a URL of `runtime.publicOrigin`
   * @throws conflict          callers do not sign in to this server
   * @throws unauthorized, mcp_sign_in_failed
   */
  async begin(
    server: McpServerRow,
    { redirectUri }: SignInStart,
    { auth, signal }: Pick<Caller, 'auth' | 'signal'>,
  ): Promise<PendingSignIn> {
    this.#requireRedirect(redirectUri)
    const subject = this.#requireSubject(auth)
    if (server.authType !== 'oauth2')
      throw new WbError('conflict', 'callers do not sign in to this MCP server: its authType is credential', {
        hint: `To let callers sign in, run: wb mcp servers update ${shellName(server)} --auth oauth2${
          server.credentialRef === null ? '' : ' --no-credential'
        }`,
      })
    const state = randomHex(32)
    const starting = this.deps.authorization.start(server, { redirectUri, state }, signal)
    const { authorizationUrl, pending } = await starting.catch(throwSignInFailure)
    const expiresAtMs = this.deps.clock.now() + pendingTtlMs
    this.#addPending(state, {
      subject,
      purpose: purposeOf(server, subject),
      expiresAtMs,
      authorization: pending,
    })
    return { authorizationUrl, state, expiresAt: new Date(expiresAtMs).toISOString() }
  }

  /**
   * Completes a sign-in, and stores its tokens.
   *
   * @throws invalid_state  the state is unknown, used or expired, or belongs to another subject or server
   * @throws unauthorized, mcp_server_not_found, mcp_sign_in_failed
   */
  async finish(
    server: McpServerRow,
    { state, code, iss }: SignInFinish,
    caller: Pick<Caller, 'auth' | 'signal' | 'reauthorize'>,
  ): Promise<McpSignIn> {
    const { clock, authorization } = this.deps
    const subject = this.#requireSubject(caller.auth)
    const pending = this.#pending.get(state)
    if (pending?.purpose !== purposeOf(server, subject) || pending.expiresAtMs <= clock.now())
      throw new WbError(
        'invalid_state',
        'this caller has not started a sign-in to this MCP server with this state',
      )
    this.#pending.delete(state)
    const tokens = await authorization
      .finish(server, pending.authorization, { code, iss }, caller.signal)
      .catch(throwSignInFailure)
    await caller.reauthorize()
    const row: McpSignInRow = {
      workspaceId: server.workspaceId,
      mcpServerId: server.mcpServerId,
      subject,
      createdAt: timestamp(clock),
      ...this.#fieldsOf(server, subject, pending.authorization.context, tokens),
    }
    const outcome = await this.deps.rows.atomic([
      { op: 'require', table: tables.mcpServers, key: [row.workspaceId, row.mcpServerId] },
      { op: 'deleteAll', table: tables.mcpSignIns, index: 'byServer', prefix: keyOf(row) },
      { op: 'insert', table: tables.mcpSignIns, row },
    ])
    if (!outcome.ok) throw new WbError('mcp_server_not_found', `MCP server '${row.mcpServerId}' not found`)
    return this.#toSignIn(row)
  }

  /** Returns the sign-in of the caller. After the sign-in has ended, returns `signedIn: false`. */
  async show(server: McpServerRow, auth: AuthContext): Promise<McpSignIn> {
    const signIn = await this.#find(server, this.#subjectOf(auth))
    return signIn ? this.#toSignIn(signIn.row) : signedOut
  }

  /** Deletes the sign-in of the caller, and revokes its token if the authorization server supports that. */
  async end(server: McpServerRow, auth: AuthContext): Promise<void> {
    const subject = this.#subjectOf(auth)
    if (subject === null) return
    const signIn = await this.#find(server, subject)
    await this.deps.rows.atomic([
      {
        op: 'deleteAll',
        table: tables.mcpSignIns,
        index: 'byServer',
        prefix: [server.workspaceId, server.mcpServerId, subject],
      },
    ])
    if (signIn) await this.#revoke(server, signIn.grant)
  }

  /**
   * Returns a key that identifies the caller's sign-in to a server, for caches of the tools that the server offers.
   * Returns undefined if the caller has to sign in first, and null if callers do not sign in to this server.
   */
  async identifySignIn(server: McpServerRow, auth: AuthContext): Promise<string | null | undefined> {
    if (server.authType !== 'oauth2') return null
    const signIn = await this.#find(server, this.#subjectOf(auth))
    if (!signIn || !this.#toSignIn(signIn.row).signedIn) return undefined
    return JSON.stringify([signIn.row.subject, signIn.row.createdAt])
  }

  /** Adds the access tokens of the caller to a server if callers sign in to it. */
  withAccessTokens(server: McpServerRow, auth: AuthContext): CallableServer {
    if (server.authType !== 'oauth2') return server
    const subject = this.#subjectOf(auth)
    return {
      ...server,
      accessTokens: {
        current: () => this.#token(server, subject),
        renew: rejectedToken => this.#token(server, subject, rejectedToken),
      },
    }
  }

  /** Waits until refreshed tokens are stored, because the previous refresh tokens no longer work. */
  async close(): Promise<void> {
    await Promise.allSettled(this.#refreshing.values())
  }

  /** @throws McpFailure */
  async #token(server: McpServerRow, subject: string | null, rejectedToken?: string): Promise<string> {
    const signIn = await this.#find(server, subject)
    const token = signIn && (await this.#currentToken(server, signIn, rejectedToken))
    if (token === undefined) throw signInRequired(server)
    return token
  }

  async #currentToken(
    server: McpServerRow,
    { row, grant }: StoredSignIn,
    rejectedToken?: string,
  ): Promise<string | undefined> {
    const { accessToken, refreshToken } = grant
    const endsAtMs = row.expiresAt === null ? Number.POSITIVE_INFINITY : Date.parse(row.expiresAt)
    const isValid = accessToken !== rejectedToken && endsAtMs - refreshAheadMs > this.deps.clock.now()
    if (isValid) return accessToken
    if (refreshToken !== null) return this.#sharedRefresh(server, row.subject, accessToken)
    return accessToken !== rejectedToken && endsAtMs > this.deps.clock.now() ? accessToken : undefined
  }

  /** Runs one refresh for all requests of this process. The refresh continues if the requests are canceled. */
  #sharedRefresh(server: McpServerRow, subject: string, staleToken: string): Promise<string | undefined> {
    const key = JSON.stringify([server.workspaceId, server.mcpServerId, subject])
    const runningRefresh = this.#refreshing.get(key)
    if (runningRefresh) return runningRefresh
    const refresh = this.#refresh(server, subject, staleToken).finally(() => this.#refreshing.delete(key))
    this.#refreshing.set(key, refresh)
    return refresh
  }

  /**
   * Replaces an access token by using the refresh token. A lease in the row prevents other processes from using the same
   * refresh token.
   *
   * @returns undefined if the subject has to sign in again
   * @throws McpFailure  the authorization server cannot be reached
   */
  async #refresh(server: McpServerRow, subject: string, staleToken: string): Promise<string | undefined> {
    const { rows, clock } = this.deps
    for (let waitedMs = 0; waitedMs <= refreshLeaseMs; waitedMs += leasePollMs) {
      const signIn = await this.#find(server, subject)
      if (!signIn) return undefined
      const { row, version, grant } = signIn
      if (grant.accessToken !== staleToken) return grant.accessToken
      if (row.refreshingUntil === null || row.refreshingUntil <= timestamp(clock)) {
        const refreshingUntil = new Date(clock.now() + refreshLeaseMs).toISOString()
        const claim: Write = {
          op: 'replace',
          table: tables.mcpSignIns,
          row: { ...row, refreshingUntil },
          version,
        }
        if ((await rows.atomic([claim])).ok) return this.#exchange(server, row, grant)
      }
      await pause(leasePollMs, new AbortController().signal)
    }
    throw new McpFailure('timeout', 'Another process did not refresh the sign-in in time.')
  }

  async #exchange(server: McpServerRow, row: McpSignInRow, grant: SealedGrant): Promise<string | undefined> {
    const { authorization, log } = this.deps
    try {
      const tokens = await authorization.refresh(server, grant.context, grant.refreshToken!, row.scopes)
      return await this.#replace(server, row, grant.context, tokens)
    } catch (error) {
      if (!(error instanceof McpFailure && error.code === 'sign_in_required')) {
        await this.#change(row, { refreshingUntil: null })
        throw error
      }
      const { workspaceId, mcpServerId, subject } = row
      log.info(
        { workspaceId, mcpServerId, subject },
        'the authorization server ended a sign-in to an MCP server',
      )
      await this.#discard(row)
      return undefined
    }
  }

  /** Stores refreshed tokens, unless the subject has signed out or signed in again since the refresh started. */
  async #replace(
    server: McpServerRow,
    row: McpSignInRow,
    context: AuthorizationContext,
    tokens: GrantedTokens,
  ): Promise<string | undefined> {
    const changed = await this.#change(row, this.#fieldsOf(server, row.subject, context, tokens))
    if (changed) return tokens.accessToken
    await this.#revoke(server, { context, ...tokens })
    return (await this.#find(server, row.subject))?.grant.accessToken
  }

  /** Changes a sign-in if its tokens have not changed since it was read. @returns false if they have */
  async #change(row: McpSignInRow, fields: Partial<McpSignInRow>): Promise<boolean> {
    let isChanged = false
    const changed = await changeRow(this.deps.rows, tables.mcpSignIns, keyOf(row), current => {
      isChanged = current.sealed === row.sealed
      return isChanged ? { ...current, ...fields } : current
    })
    return 'row' in changed && isChanged
  }

  async #discard(row: McpSignInRow): Promise<void> {
    const { rows } = this.deps
    const stored = await rows.get(tables.mcpSignIns, keyOf(row))
    if (stored?.row.sealed !== row.sealed) return
    await rows.atomic([{ op: 'delete', table: tables.mcpSignIns, key: keyOf(row), version: stored.version }])
  }

  async #revoke(server: McpServerRow, { context, accessToken, refreshToken }: SealedGrant): Promise<void> {
    const token =
      refreshToken === null
        ? ({ token: accessToken, hint: 'access_token' } as const)
        : ({ token: refreshToken, hint: 'refresh_token' } as const)
    await this.deps.authorization.revoke(server, context, token).catch(error => {
      const { workspaceId, mcpServerId } = server
      const code = error instanceof McpFailure ? error.code : 'unknown'
      this.deps.log.info({ workspaceId, mcpServerId, code }, 'a token for an MCP server could not be revoked')
    })
  }

  /**
   * Returns undefined if the subject is not signed in, or signed in before the URL or OAuth client of the server
   * changed.
   */
  async #find(server: McpServerRow, subject: string | null): Promise<StoredSignIn | undefined> {
    if (subject === null) return undefined
    const { workspaceId, mcpServerId } = server
    const stored = await this.deps.rows.get(tables.mcpSignIns, [workspaceId, mcpServerId, subject])
    const text = stored && this.deps.seal.open(purposeOf(server, subject), stored.row.sealed)
    return text === undefined ? undefined : { ...stored!, grant: JSON.parse(text) as SealedGrant }
  }

  #fieldsOf(
    server: McpServerRow,
    subject: string,
    context: AuthorizationContext,
    { accessToken, refreshToken, expiresInSeconds, scopes }: GrantedTokens,
  ) {
    const { clock, seal } = this.deps
    const grant: SealedGrant = { context, accessToken, refreshToken }
    return {
      scopes,
      expiresAt:
        expiresInSeconds === null ? null : new Date(clock.now() + expiresInSeconds * 1_000).toISOString(),
      canRefresh: refreshToken !== null,
      sealed: seal.seal(purposeOf(server, subject), JSON.stringify(grant)),
      refreshingUntil: null,
    }
  }

  #toSignIn({ scopes, expiresAt, canRefresh }: McpSignInRow): McpSignIn {
    const hasEnded = !canRefresh && expiresAt !== null && expiresAt <= timestamp(this.deps.clock)
    return hasEnded ? signedOut : { signedIn: true, scopes, expiresAt, canRefresh }
  }

  #addPending(state: string, pending: PendingMcpSignIn): void {
    const now = this.deps.clock.now()
    for (const [key, { expiresAtMs }] of this.#pending) if (expiresAtMs <= now) this.#pending.delete(key)
    const pendingOfSubject = [...this.#pending].filter(([, { subject }]) => subject === pending.subject)
    if (pendingOfSubject.length >= pendingPerSubjectMax) this.#pending.delete(pendingOfSubject[0]![0])
    if (this.#pending.size >= pendingMax) this.#pending.delete(this.#pending.keys().next().value!)
    this.#pending.set(state, pending)
  }

  /** @throws validation_error */
  #requireRedirect(redirectUri: string): void {
    const { protocol, hostname, origin, username, password, hash } = new URL(redirectUri)
    const isPlain = username === '' && password === '' && hash === ''
    const { publicOrigin } = this.deps
    const isPublicOrigin = publicOrigin !== null && origin === new URL(publicOrigin).origin
    if (isPlain && (isPublicOrigin || (protocol === 'http:' && isLoopback(hostname)))) return
    throw new WbError(
      'validation_error',
      'redirectUri: must be an http URL of this machine (127.0.0.1, [::1] or localhost) or a URL of runtime.publicOrigin, without user information or a fragment',
    )
  }

  /** @throws unauthorized */
  #requireSubject(auth: AuthContext): string {
    const subject = this.#subjectOf(auth)
    if (subject !== null) return subject
    throw new WbError('unauthorized', 'an anonymous caller cannot sign in to an MCP server', {
      hint: 'Send an API key or an access token of this runtime.',
    })
  }

  /** Returns null for an anonymous caller, unless all callers are the same user. */
  #subjectOf(auth: AuthContext): string | null {
    // The ID of an operator differs in each process.
    if (auth.subject?.type === 'system') return 'system'
    return subjectName(auth) ?? (this.deps.isSingleUser ? 'local' : null)
  }
}

const signedOut: McpSignIn = { signedIn: false, scopes: null, expiresAt: null, canRefresh: false }

/** Returns true if the change from `before` to `after` invalidates the sign-ins to a server. */
export function invalidatesSignIns(before: McpServerRow, after: McpServerRow): boolean {
  return purposeOf(before, '') !== purposeOf(after, '')
}

/**
 * Returns the purpose for which tokens are encrypted. It binds them to their subject, and to the server and the OAuth
 * client that they were granted for.
 */
function purposeOf(server: McpServerRow, subject: string): string {
  const { workspaceId, mcpServerId, url, authType, oauthClientId, oauthClientSecretRef, oauthScopes } = server
  const client = [authType, oauthClientId, oauthClientSecretRef, oauthScopes]
  return `mcp sign-in\n${JSON.stringify([workspaceId, mcpServerId, url, client, subject])}`
}

function keyOf({ workspaceId, mcpServerId, subject }: McpSignInRow): string[] {
  return [workspaceId, mcpServerId, subject]
}

function throwSignInFailure(error: unknown): never {
  if (!(error instanceof McpFailure)) throw error
  throw new WbError('mcp_sign_in_failed', error.message, {}, { cause: error })
}

/** Returns the error for a caller who has not signed in to a server. */
function signInRequired(server: Pick<McpServerRow, 'label' | 'mcpServerId'>): McpFailure {
  return new McpFailure(
    'sign_in_required',
    `You are not signed in to this server. Sign in with: ${mcpLoginCommand(server)}`,
  )
}

/** Returns the command that signs in to a server. */
export function mcpLoginCommand({ label, mcpServerId }: Pick<McpServerRow, 'label' | 'mcpServerId'>): string {
  return `wb mcp servers login ${shellName({ label, mcpServerId })}`
}

/** Returns the label of a server, or its ID if the label would have to be quoted in a shell. */
function shellName({ label, mcpServerId }: Pick<McpServerRow, 'label' | 'mcpServerId'>): string {
  return /^\w[\w.@+-]*$/.test(label) ? label : mcpServerId
}
