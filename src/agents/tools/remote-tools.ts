import { LRUCache } from 'lru-cache'
import pMap from 'p-map'
import type { AuthContext } from '../../access/subject.ts'
import type { Clock } from '../../base/clock.ts'
import { withTimeout } from '../../base/deadline.ts'
import type { Log } from '../../base/log.ts'
import { type McpCall, McpFailure, type McpTool, type McpToolResult } from '../../models/mcp/client.ts'
import type { RowStore } from '../../storage/rows.ts'
import { type McpServerRow, tables } from '../../storage/tables.ts'
import { createOffer, findAcceptedTool, type McpOffer, type OfferedTool } from '../../workspaces/mcp-offer.ts'
import { acceptFirstOffer } from '../../workspaces/mcp-review.ts'
import type { CallableServer, McpSignIns } from '../../workspaces/mcp-sign-ins.ts'
import { createMcpTool, listTimeoutMs } from './mcp-tool.ts'
import type { Tool } from './tool.ts'
import { ToolError } from './tool-result.ts'

/** Requests the tools of a server. Rejects if the request fails. */
export type ListRemoteTools = (server: CallableServer, signal: AbortSignal) => Promise<readonly McpTool[]>

/**
 * Calls a tool of a server.
 *
 * @throws McpFailure
 */
export type CallRemoteTool = (
  server: CallableServer,
  call: McpCall,
  signal: AbortSignal,
) => Promise<McpToolResult>

/** Tools that a caller can use, and servers whose tools require that the caller signs in first. */
export interface ToolOffer {
  readonly tools: readonly Tool[]
  readonly signInServers: readonly McpServerRow[]
}

export interface RemoteToolsDependencies {
  readonly rows: RowStore
  readonly clock: Clock
  readonly log: Log
  readonly listTools: ListRemoteTools
  readonly callTool: CallRemoteTool
  readonly signIns: Pick<McpSignIns, 'withAccessTokens' | 'identifySignIn'>
  /** Time for which a server's list of tools is cached, in milliseconds; 0 disables the cache. */
  readonly ttlMs: number
}

const serversMax = 200
const concurrentServersMax = 8
/** Maximum time in milliseconds for listing the tools of all servers. After that, no more requests are sent. */
const totalTimeoutMs = 10_000
/** Maximum total size in UTF-16 units of all cached tools, and of the tools that one call of `list` returns. */
const cachedCharsMax = 64_000_000
const listCharsMax = 16_000_000

/**
 * Tools of the MCP servers that workspaces registered.
 *
 * @see docs/tool-servers.md
 */
export class RemoteTools {
  readonly #deps: RemoteToolsDependencies
  /** Cached offers. The key contains the time of the row's last change, so the entry is not used after a change. */
  readonly #cachedOffers: LRUCache<string, McpOffer>
  /** Requests in progress, by the key of the cache. */
  readonly #pendingOffers = new Map<string, Promise<McpOffer>>()

  constructor(deps: RemoteToolsDependencies) {
    this.#deps = deps
    const perf = { now: () => deps.clock.now() }
    this.#cachedOffers = new LRUCache({
      maxSize: cachedCharsMax,
      sizeCalculation: ({ chars }, key) => chars + key.length,
      ttl: deps.ttlMs,
      ttlResolution: 0,
      perf,
    })
  }

  /**
   * Returns the tools of the enabled servers of a workspace, in order of server ID. Includes only tools that
   * were accepted and have not changed since. If a server responds for the first time, accepts its tools without a
   * review. If a server fails, logs the failure and omits its tools.
   *
   * @param auth       caller; a server that requires sign-in receives the access token from the caller's sign-in to
   *   that server
   * @param serverIds  IDs of the servers whose tools to list; all by default
   */
  async list(workspaceId: string, auth: AuthContext, serverIds?: ReadonlySet<string>): Promise<ToolOffer> {
    const stored = await this.#deps.rows.list(tables.mcpServers, {
      index: 'byWorkspace',
      prefix: [workspaceId],
      limit: serversMax,
    })
    const servers = stored
      .map(({ row }) => row)
      .filter(({ enabled, mcpServerId }) => enabled && (serverIds?.has(mcpServerId) ?? true))
    let chars = 0
    const signInServers: McpServerRow[] = []
    const tools = (await this.#requestOffers(servers, auth)).flatMap(({ server, offer }) => {
      if (offer === undefined) signInServers.push(server)
      chars += offer?.chars ?? 0
      return offer === undefined || chars > listCharsMax ? [] : this.#toolsOf(server, auth, offer)
    })
    return { tools, signInServers }
  }

  /**
   * Requests the tools of the servers concurrently. Sends at most eight requests at a time, because each response is
   * read into memory.
   */
  async #requestOffers(servers: readonly McpServerRow[], auth: AuthContext) {
    const deadlineMs = this.#deps.clock.now() + totalTimeoutMs
    const offers = await pMap(servers, server => this.#offerOrSignIn(server, auth, deadlineMs), {
      concurrency: concurrentServersMax,
    })
    return offers.filter(offer => offer !== undefined)
  }

  /**
   * Returns a server with its offer. The offer is undefined if the caller must sign in first. If the server fails, logs
   * the failure and returns undefined.
   */
  async #offerOrSignIn(
    server: McpServerRow,
    auth: AuthContext,
    deadlineMs: number,
  ): Promise<{ server: McpServerRow; offer: McpOffer | undefined } | undefined> {
    const { rows, log, signIns } = this.#deps
    const { workspaceId, mcpServerId } = server
    try {
      const signIn = await signIns.identifySignIn(server, auth)
      if (signIn === undefined) return { server, offer: undefined }
      const offer = await this.#cachedOffer(server, auth, signIn, deadlineMs)
      if (server.reviewedTools !== null) return { server, offer }
      const acceptedServer = await acceptFirstOffer(rows, server, offer)
      if (acceptedServer?.reviewedTools)
        log.info(
          { workspaceId, mcpServerId },
          'an MCP server listed its tools for the first time, and they were accepted',
        )
      return acceptedServer && { server: acceptedServer, offer }
    } catch (error) {
      if (error instanceof McpFailure && error.code === 'sign_in_required')
        return { server, offer: undefined }
      log.warn({ workspaceId, mcpServerId, error }, 'an MCP server did not list its tools')
      return undefined
    }
  }

  /**
   * Returns the offer of a server, from the cache if possible.
   *
   * @param signIn  key that identifies the caller's sign-in; part of the cache key, because a server can offer
   *   different tools to each caller. Null if the server does not require sign-in
   */
  async #cachedOffer(
    server: McpServerRow,
    auth: AuthContext,
    signIn: string | null,
    deadlineMs: number,
  ): Promise<McpOffer> {
    const { workspaceId, mcpServerId, updatedAt, url, credentialRef } = server
    const key = JSON.stringify([workspaceId, mcpServerId, updatedAt, url, credentialRef, signIn])
    const cached = this.#cachedOffers.get(key)
    if (cached) return cached
    if (this.#deps.clock.now() >= deadlineMs)
      throw new Error('the time limit for listing the tools of all servers was reached')
    if (this.#deps.ttlMs === 0) return this.#requestOffer(server, auth)
    const pending =
      this.#pendingOffers.get(key) ??
      this.#requestOffer(server, auth).finally(() => this.#pendingOffers.delete(key))
    this.#pendingOffers.set(key, pending)
    const offer = await pending
    this.#cachedOffers.set(key, offer)
    return offer
  }

  /** Requests the tools of a server, within the time limit. */
  async #requestOffer(server: McpServerRow, auth: AuthContext): Promise<McpOffer> {
    const { clock, listTools, signIns } = this.#deps
    const callable = signIns.withAccessTokens(server, auth)
    return createOffer(await withTimeout(clock, listTimeoutMs, signal => listTools(callable, signal)))
  }

  /** Returns the tools that the server's row allows and that have not changed since they were accepted. */
  #toolsOf(server: McpServerRow, auth: AuthContext, { tools }: McpOffer): Tool[] {
    const { mcpServerId: id, label } = server
    return tools
      .filter(tool => isAllowedAndAccepted(server, tool))
      .map(tool =>
        createMcpTool({ id, label, isRegistered: true }, tool, (call, signal) =>
          this.#call(server, auth, tool, call, signal),
        ),
      )
  }

  /**
   * Calls a tool. Reads the server's row again to apply changes made since the tools were listed. Resolves the
   * credential for this call.
   *
   * @throws ToolError, McpFailure
   */
  async #call(
    { workspaceId, mcpServerId, url }: McpServerRow,
    auth: AuthContext,
    tool: OfferedTool,
    call: McpCall,
    signal: AbortSignal,
  ): Promise<McpToolResult> {
    const current = (await this.#deps.rows.get(tables.mcpServers, [workspaceId, mcpServerId]))?.row
    if (!current?.enabled || current.url !== url || !isAllowedAndAccepted(current, tool))
      throw new ToolError(`the tool ${tool.name} is no longer offered`)
    return this.#deps.callTool(this.#deps.signIns.withAccessTokens(current, auth), call, signal)
  }
}

function isAllowedAndAccepted(
  { allowedTools, reviewedTools }: McpServerRow,
  { name, hash }: OfferedTool,
): boolean {
  const isAllowed = allowedTools?.includes(name) ?? true
  return isAllowed && reviewedTools !== null && findAcceptedTool(reviewedTools, name)?.hash === hash
}
