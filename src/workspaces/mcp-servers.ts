import { authorizeStoredDestination } from '../access/authorize-destination.ts'
import type { Caller } from '../access/caller.ts'
import { requireWorkspace } from '../access/require-workspace.ts'
import type { AuthContext } from '../access/subject.ts'
import { type Clock, timestamp } from '../base/clock.ts'
import { TimedOut, withTimeout } from '../base/deadline.ts'
import { newId } from '../base/id.ts'
import type { Log } from '../base/log.ts'
import { redactQuerySecrets, secretParameterOf } from '../base/query-secrets.ts'
import { WbError } from '../contract/errors.ts'
import type {
  McpServerCreate,
  McpServerPatch,
  McpServerTools,
  McpTest,
  Review,
} from '../contract/mcp-servers.ts'
import type { PageQuery } from '../contract/page.ts'
import { McpFailure, type McpTool, mcpTimeout } from '../models/mcp/client.ts'
import { changeRow } from '../storage/change-row.ts'
import type { Pager, RowPage } from '../storage/cursor.ts'
import type { RowStore, Write } from '../storage/rows.ts'
import { type McpServerRow, tables } from '../storage/tables.ts'
import { createOffer, type McpOffer } from './mcp-offer.ts'
import { acceptFirstOffer, applyReview, listToolStates } from './mcp-review.ts'
import { type CallableServer, invalidatesSignIns, type McpSignIns } from './mcp-sign-ins.ts'

/** Timeout for listing the tools of a server in a test. */
const testTimeoutMs = 10_000
/**
 * Timeout for listing the tools of a new server. If it expires, the tools are accepted when the server first responds.
 */
const newServerTimeoutMs = 5_000

export interface McpServersDependencies {
  readonly rows: RowStore
  readonly pager: Pager
  readonly clock: Clock
  readonly log: Log
  /** @throws validation_error  requests to `url` are not allowed; the message names `field` */
  readonly checkUrl: (field: string, url: string) => void
  /** Requests the tools of a server. @throws McpFailure */
  readonly listTools: (server: CallableServer, signal: AbortSignal) => Promise<readonly McpTool[]>
  readonly signIns: Pick<McpSignIns, 'withAccessTokens'>
}

/** The caller whose rights are checked, and whose access tokens are sent to a server. */
type ServerCaller = Pick<Caller, 'auth' | 'signal'>

/** The MCP servers whose tools the agents of a workspace can call. @see docs/tool-servers.md */
export class McpServers {
  constructor(private readonly deps: McpServersDependencies) {}

  /** Lists servers in order of their IDs. @throws workspace_not_found, invalid_cursor */
  async list(workspaceId: string, query: PageQuery): Promise<RowPage<McpServerRow>> {
    const { rows, pager } = this.deps
    await requireWorkspace(rows, workspaceId)
    return pager.page(tables.mcpServers, { index: 'byWorkspace', prefix: [workspaceId] }, query)
  }

  /**
   * Creates a server and accepts its current tools. If the server cannot be reached, or callers sign in to it, its tools
   * are accepted when it first responds.
   *
   * @throws workspace_not_found, validation_error
   * @throws forbidden  row-level access is on, and the caller lacks `manage:access`
   */
  async create(workspaceId: string, fields: McpServerCreate, caller: ServerCaller): Promise<McpServerRow> {
    const { rows, clock, checkUrl } = this.deps
    const workspaceCheck = await authorizeStoredDestination(rows, workspaceId, caller)
    checkUrl('url', fields.url)
    requireNoSecret(fields.url)
    requireConsistentAuth(fields)
    const now = timestamp(clock)
    const times = { createdAt: now, updatedAt: now }
    const row: McpServerRow = { workspaceId, mcpServerId: newId(), ...fields, ...times, reviewedTools: null }
    const outcome = await rows.atomic([workspaceCheck, { op: 'insert', table: tables.mcpServers, row }])
    if (!outcome.ok) return this.create(workspaceId, fields, caller)
    const canListTools = row.enabled && row.authType === 'credential'
    const offer = canListTools ? await this.#fetchOffer(row, newServerTimeoutMs, caller.signal) : undefined
    if (offer instanceof McpFailure) {
      const facts = { workspaceId, mcpServerId: row.mcpServerId, error: offer }
      this.deps.log.info(facts, 'the tools of a new MCP server cannot be listed yet')
    } else if (offer) await acceptFirstOffer(rows, row, offer)
    return row
  }

  /** @throws workspace_not_found, mcp_server_not_found */
  async get(workspaceId: string, mcpServerId: string): Promise<McpServerRow> {
    const stored = await this.deps.rows.get(tables.mcpServers, [workspaceId, mcpServerId])
    if (stored) return stored.row
    await requireWorkspace(this.deps.rows, workspaceId)
    throw notFound(mcpServerId)
  }

  /**
   * Changes some fields. After a change of the URL, the tools must be accepted again. A change of the URL or the OAuth
   * client ends all sign-ins. If the patch contains the URL that {@link shownUrl} returns, the stored URL with its hidden
   * values is kept.
   *
   * @throws workspace_not_found, mcp_server_not_found, validation_error
   * @throws forbidden  row-level access is on, and the caller lacks `manage:access`
   */
  async update(
    workspaceId: string,
    mcpServerId: string,
    patch: McpServerPatch,
    caller: ServerCaller,
  ): Promise<McpServerRow> {
    const { rows, clock, checkUrl } = this.deps
    const workspaceCheck = await authorizeStoredDestination(rows, workspaceId, caller)
    await this.get(workspaceId, mcpServerId)
    if (patch.url !== undefined) checkUrl('url', patch.url)
    const now = timestamp(clock)
    const key = [workspaceId, mcpServerId]
    const change = (before: McpServerRow): McpServerRow => {
      const { url } = patch
      const after = { ...before, ...patch, updatedAt: now }
      requireConsistentAuth(after)
      if (url === undefined || url === shownUrl(before)) return { ...after, url: before.url }
      requireNoSecret(url)
      return { ...after, reviewedTools: null }
    }
    const changed = await changeRow(rows, tables.mcpServers, key, change, (before, after) => [
      workspaceCheck,
      ...(invalidatesSignIns(before, after) ? [signInsOf(key)] : []),
    ])
    if ('row' in changed) return changed.row
    if ('failedCheck' in changed) return this.update(workspaceId, mcpServerId, patch, caller)
    throw notFound(mcpServerId)
  }

  /**
   * @throws workspace_not_found, mcp_server_not_found
   * @throws forbidden  row-level access is on, and the caller lacks `manage:access`
   */
  async delete(workspaceId: string, mcpServerId: string, caller: Pick<Caller, 'auth'>): Promise<void> {
    await authorizeStoredDestination(this.deps.rows, workspaceId, caller)
    await this.get(workspaceId, mcpServerId)
    const key = [workspaceId, mcpServerId]
    const outcome = await this.deps.rows.atomic([
      { op: 'delete', table: tables.mcpServers, key },
      signInsOf(key),
    ])
    if (!outcome.ok) throw notFound(mcpServerId)
  }

  /** Connects to a server and lists its tools. @throws workspace_not_found, mcp_server_not_found */
  async test(workspaceId: string, mcpServerId: string, { auth, signal }: ServerCaller): Promise<McpTest> {
    const { clock } = this.deps
    const server = await this.get(workspaceId, mcpServerId)
    const startedAt = clock.now()
    const outcome = (tools: string[], error: McpTest['error']): McpTest => ({
      ok: error === null,
      toolCount: tools.length,
      tools,
      latencyMs: clock.now() - startedAt,
      error,
    })
    const offered = await this.#listTools(this.#callable(server, auth), testTimeoutMs, signal)
    if (offered instanceof McpFailure) return outcome([], errorOf(offered))
    return outcome(offered.map(({ name }) => name).sort(), null)
  }

  /**
   * Compares the current tools of a server with the accepted ones. When a server responds for the first time, its tools
   * are accepted.
   *
   * @throws workspace_not_found, mcp_server_not_found
   */
  async tools(
    workspaceId: string,
    mcpServerId: string,
    { auth, signal }: ServerCaller,
  ): Promise<McpServerTools> {
    const server = await this.get(workspaceId, mcpServerId)
    const offer = await this.#fetchOffer(this.#callable(server, auth), testTimeoutMs, signal)
    if (offer instanceof McpFailure) return { items: [], error: errorOf(offer) }
    const isNew = server.reviewedTools === null
    const row = isNew ? await acceptFirstOffer(this.deps.rows, server, offer) : server
    if (!row) throw notFound(mcpServerId)
    return { items: listToolStates(row, offer), error: null }
  }

  /**
   * Accepts some of the current tools of a server.
   *
   * @throws workspace_not_found, mcp_server_not_found
   * @throws forbidden  row-level access is on, and the caller lacks `manage:access`
   * @throws conflict   the server cannot be reached, or its tools have changed
   */
  async review(
    workspaceId: string,
    mcpServerId: string,
    review: Review,
    caller: ServerCaller,
  ): Promise<McpServerTools> {
    const { rows, clock } = this.deps
    const { auth, signal } = caller
    const workspaceCheck = await authorizeStoredDestination(rows, workspaceId, caller)
    const server = await this.get(workspaceId, mcpServerId)
    const offer = await this.#fetchOffer(this.#callable(server, auth), testTimeoutMs, signal)
    if (offer instanceof McpFailure)
      throw new WbError('conflict', `the tools of the server cannot be listed: ${offer.message}`)
    const updatedAt = timestamp(clock)
    const change = (row: McpServerRow): McpServerRow => {
      if (row.url !== server.url) throw new WbError('conflict', 'the url of the server has changed')
      return { ...row, reviewedTools: applyReview(row, offer, review.accept), updatedAt }
    }
    const key = [workspaceId, mcpServerId]
    const changed = await changeRow(rows, tables.mcpServers, key, change, () => [workspaceCheck])
    if ('failedCheck' in changed) return this.review(workspaceId, mcpServerId, review, caller)
    if ('absent' in changed) throw notFound(mcpServerId)
    return { items: listToolStates(changed.row, offer), error: null }
  }

  #callable(server: McpServerRow, auth: AuthContext): CallableServer {
    return this.deps.signIns.withAccessTokens(server, auth)
  }

  async #fetchOffer(
    server: CallableServer,
    timeoutMs: number,
    signal: AbortSignal,
  ): Promise<McpOffer | McpFailure> {
    const tools = await this.#listTools(server, timeoutMs, signal)
    return tools instanceof McpFailure ? tools : createOffer(tools)
  }

  /** Requests the tools of a server. Returns an {@link McpFailure} instead of throwing it. */
  async #listTools(server: CallableServer, timeoutMs: number, signal: AbortSignal) {
    const { clock, listTools } = this.deps
    try {
      return await withTimeout(clock, timeoutMs, attemptSignal => listTools(server, attemptSignal), signal)
    } catch (error) {
      const failure = error instanceof TimedOut ? mcpTimeout(error) : error
      if (failure instanceof McpFailure) return failure
      throw error
    }
  }
}

/** Returns the write that deletes all sign-ins to a server. */
function signInsOf(key: readonly string[]): Write {
  return { op: 'deleteAll', table: tables.mcpSignIns, index: 'byServer', prefix: key }
}

/**
 * Checks that the authentication fields of a server are consistent.
 *
 * @throws validation_error
 */
function requireConsistentAuth(server: McpServerCreate): void {
  if (server.authType === 'oauth2' && server.credentialRef !== null)
    throw new WbError('validation_error', 'credentialRef: must be null if authType is oauth2')
  if (server.oauthClientSecretRef !== null && server.oauthClientId === null)
    throw new WbError('validation_error', 'oauthClientSecretRef: must be null if oauthClientId is null')
}

/** Returns the URL of a server without the secrets in its query. Earlier versions accepted URLs with secrets. */
export function shownUrl({ url }: Pick<McpServerRow, 'url'>): string {
  return redactQuerySecrets(url)
}

/**
 * Checks that a URL has no parameter with a secret, because everyone in the workspace can see the URL.
 *
 * @throws validation_error
 */
function requireNoSecret(url: string): void {
  const name = secretParameterOf(url)
  if (name === undefined) return
  throw new WbError(
    'validation_error',
    `url: the parameter ${name} must not be in a URL, because it contains a secret`,
    {
      hint: 'Remove it from the URL, and set credentialRef to a reference, for example env:TOOLS_KEY. The secret is then sent as a bearer token.',
    },
  )
}

function errorOf({ code, message }: McpFailure) {
  return { code, message }
}

function notFound(mcpServerId: string): WbError {
  return new WbError('mcp_server_not_found', `MCP server '${mcpServerId}' not found`)
}
