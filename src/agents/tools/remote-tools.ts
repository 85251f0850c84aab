import { LRUCache } from 'lru-cache'
import pMap from 'p-map'
import type { AuthContext } from '../../access/subject.ts'
import type { Clock } from '../../base/clock.ts'
import { withTimeout } from '../../base/deadline.ts'
import type { Log } from '../../base/log.ts'
import { type McpCall, McpFailure, type McpTool, type McpToolResult } from '../../models/mcp/client.ts'
import type { RowStore } from '../../storage/rows.ts'
import { type McpServerRow, tables } from '../../storage/tables.ts'
import { createOffer, type McpOffer, type OfferedTool, reviewedTool } from '../../workspaces/mcp-offer.ts'
import { acceptFirstOffer } from '../../workspaces/mcp-review.ts'
import type { CallableServer, McpSignIns } from '../../workspaces/mcp-sign-ins.ts'
import { createMcpTool, listTimeoutMs } from './mcp-tool.ts'
import type { Tool } from './tool.ts'
import { ToolError } from './tool-result.ts'

/** Requests the tools of a server. Rejects if the server cannot be reached. */
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

/** Tools that a caller can use, and servers that the caller has to sign in to first. */
export interface ToolOffer {
  readonly tools: readonly Tool[]
  readonly signInServers: readonly McpServerRow[]
}

export interface RemoteToolsParts {
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
/** Maximum time in milliseconds for listing all servers. After it, no further servers are requested. */
const totalTimeoutMs = 10_000
/** Maximum total size of all cached tools, and of the tools that one call of `list` returns, in UTF-16 units. */
const cachedCharsMax = 64_000_000
const listCharsMax = 16_000_000

/**
 * Tools of the MCP servers that workspaces registered.
 *
 * @see docs/tool-servers.md
 */
export class RemoteTools {
  readonly #parts: RemoteToolsParts
  /**
   * Cached lists. The key contains the last change of the server's row, so that a change by any process
   * invalidates the entry.
   */
  readonly #cachedOffers: LRUCache<string, McpOffer>
  /** Requests in progress, by the same key. */
  readonly #pendingOffers = new Map<string, Promise<McpOffer>>()

  constructor(parts: RemoteToolsParts) {
    this.#parts = parts
    const perf = { now: () => parts.clock.now() }
    this.#cachedOffers = new LRUCache({
      maxSize: cachedCharsMax,
      sizeCalculation: ({ chars }, key) => chars + key.length,
      ttl: parts.ttlMs,
      ttlResolution: 0,
      perf,
    })
  }

  /**
   * Returns the tools of the enabled servers of a workspace, in order of server ID. Includes only tools that
   * were reviewed and have not changed since. The first list of a server is accepted without a review. If a server
   * fails, logs the failure and leaves out its tools.
   *
   * @param auth  caller, whose access token is sent to servers that require sign-in
   * @param only  IDs of the servers to request; all by default
   */
  async list(workspaceId: string, auth: AuthContext, only?: ReadonlySet<string>): Promise<ToolOffer> {
    const found = await this.#parts.rows.list(tables.mcpServers, {
      index: 'byWorkspace',
      prefix: [workspaceId],
      limit: serversMax,
    })
    const servers = found
      .map(({ row }) => row)
      .filter(({ enabled, mcpServerId }) => enabled && (only?.has(mcpServerId) ?? true))
    let chars = 0
    const signInServers: McpServerRow[] = []
    const tools = (await this.#requestOffers(servers, auth)).flatMap(({ server, offer }) => {
      if (offer === undefined) signInServers.push(server)
      chars += offer?.chars ?? 0
      return offer === undefined || chars > listCharsMax ? [] : this.#toolsOf(server, auth, offer)
    })
    return { tools, signInServers }
  }

  /** Requests the servers concurrently, at most eight at the same time, because each response is read into memory. */
  async #requestOffers(servers: readonly McpServerRow[], auth: AuthContext) {
    const deadlineMs = this.#parts.clock.now() + totalTimeoutMs
    const offers = await pMap(servers, server => this.#offerOrSignIn(server, auth, deadlineMs), {
      concurrency: concurrentServersMax,
    })
    return offers.filter(offer => offer !== undefined)
  }

  /**
   * Returns a server with its offer. The offer is undefined if the caller has to sign in first. If the server fails,
   * logs the failure and returns undefined.
   */
  async #offerOrSignIn(
    server: McpServerRow,
    auth: AuthContext,
    deadlineMs: number,
  ): Promise<{ server: McpServerRow; offer: McpOffer | undefined } | undefined> {
    const { rows, log, signIns } = this.#parts
    const { workspaceId, mcpServerId } = server
    try {
      const signIn = await signIns.identifySignIn(server, auth)
      if (signIn === undefined) return { server, offer: undefined }
      const offer = await this.#cachedOffer(server, auth, signIn, deadlineMs)
      if (server.reviewedTools !== null) return { server, offer }
      const reviewed = await acceptFirstOffer(rows, server, offer)
      log.info(
        { workspaceId, mcpServerId },
        'an MCP server listed its tools for the first time, and they were accepted',
      )
      return reviewed && { server: reviewed, offer }
    } catch (error) {
      if (error instanceof McpFailure && error.code === 'sign_in_required')
        return { server, offer: undefined }
      log.warn({ workspaceId, mcpServerId, error }, 'an MCP server did not list its tools')
      return undefined
    }
  }

  /**
   * @param signIn  sign-in of the caller, because a server can offer different tools to each caller; null
   * without sign-in
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
    if (this.#parts.clock.now() >= deadlineMs)
      throw new Error('the time limit for listing the tools of all servers was reached')
    if (this.#parts.ttlMs === 0) return this.#requestOffer(server, auth)
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
    const { clock, listTools, signIns } = this.#parts
    const callable = signIns.withAccessTokens(server, auth)
    return createOffer(await withTimeout(clock, listTimeoutMs, signal => listTools(callable, signal)))
  }

  /** Returns the tools that the server's row allows and that are unchanged since their review. */
  #toolsOf(server: McpServerRow, auth: AuthContext, { tools }: McpOffer): Tool[] {
    const { mcpServerId: id, label } = server
    return tools
      .filter(tool => isOffered(server, tool))
      .map(tool =>
        createMcpTool({ id, label, isRegistered: true }, tool, (call, signal) =>
          this.#call(server, auth, tool, call, signal),
        ),
      )
  }

  /**
   * Calls a tool. Reads the server's row again, so that changes since the list apply. The credential is
   * resolved for this call.
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
    const current = (await this.#parts.rows.get(tables.mcpServers, [workspaceId, mcpServerId]))?.row
    if (!current?.enabled || current.url !== url || !isOffered(current, tool))
      throw new ToolError(`the tool ${tool.name} is no longer offered`)
    return this.#parts.callTool(this.#parts.signIns.withAccessTokens(current, auth), call, signal)
  }
}

function isOffered({ allowedTools, reviewedTools }: McpServerRow, { name, hash }: OfferedTool): boolean {
  const isAllowed = allowedTools?.includes(name) ?? true
  return isAllowed && reviewedTools !== null && reviewedTool(reviewedTools, name)?.hash === hash
}
