import { LRUCache } from 'lru-cache'
import pMap from 'p-map'
import type { AuthContext } from '../../access/subject.ts'
import type { Clock } from '../../base/clock.ts'
import { within } from '../../base/deadline.ts'
import type { Log } from '../../base/log.ts'
import { type McpAnswer, type McpCall, McpFailure, type McpTool } from '../../models/mcp/client.ts'
import type { RowStore } from '../../storage/rows.ts'
import { type McpServerRow, tables } from '../../storage/tables.ts'
import { type Offer, type OfferedTool, offerOf, reviewOf } from '../../workspaces/mcp-offer.ts'
import { pinFirst } from '../../workspaces/mcp-pins.ts'
import type { CallableServer, McpSignIns } from '../../workspaces/mcp-sign-ins.ts'
import { answerTimeoutMs, mcpTool } from './mcp-tool.ts'
import { ToolError } from './result.ts'
import type { Tool } from './tool.ts'

/** Ask a server for its tools; fails when it cannot be reached. */
export type ListRemoteTools = (server: CallableServer, signal: AbortSignal) => Promise<readonly McpTool[]>

/** Call a tool of a server. @throws McpFailure */
export type CallRemoteTool = (
  server: CallableServer,
  call: McpCall,
  signal: AbortSignal,
) => Promise<McpAnswer>

/** Tools that a caller is offered, and labels of the servers that the caller has to sign in to first. */
export interface ToolOffer {
  readonly tools: readonly Tool[]
  readonly signInTo: readonly McpServerRow[]
}

export interface RemoteToolsParts {
  readonly rows: RowStore
  readonly clock: Clock
  readonly log: Log
  readonly listTools: ListRemoteTools
  readonly callTool: CallRemoteTool
  readonly signIns: Pick<McpSignIns, 'callable' | 'signInOf'>
  /** How long what a server said is believed, in milliseconds; 0 is not at all. */
  readonly ttlMs: number
}

const serversMax = 200
const askedAtOnce = 8
/** Once a list has taken this long, no other server is asked for it. */
const listWithinMs = 10_000
/** What all servers said is kept up to this length, and of one list no more is given. */
const charsRemembered = 64_000_000
const charsListed = 16_000_000

/** The tools of the MCP servers that workspaces have registered. @see docs/tool-servers.md */
export class RemoteTools {
  readonly #parts: RemoteToolsParts
  /** By the server's row as it was last changed, so that a change through any process is a new question. */
  readonly #known: LRUCache<string, Offer>
  /** Those that are asked now, by the same. */
  readonly #asked = new Map<string, Promise<Offer>>()

  constructor(parts: RemoteToolsParts) {
    this.#parts = parts
    const perf = { now: () => parts.clock.now() }
    this.#known = new LRUCache({
      maxSize: charsRemembered,
      sizeCalculation: ({ chars }, key) => chars + key.length,
      ttl: parts.ttlMs,
      ttlResolution: 0,
      perf,
    })
  }

  /**
   * What the enabled servers of a workspace offer, servers by id, as far as it was reviewed and is what it was then.
   * One that fails offers nothing, and is named in the log. What is heard of a server for the first time is taken as it
   * is.
   *
   * @param auth  caller, whose access token is sent to servers that callers sign in to
   * @param only  ids of servers that are asked; all when left out
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
    const signInTo: McpServerRow[] = []
    const tools = (await this.#offers(servers, auth)).flatMap(({ server, offer }) => {
      if (offer === undefined) signInTo.push(server)
      chars += offer?.chars ?? 0
      return offer === undefined || chars > charsListed ? [] : this.#toolsOf(server, auth, offer)
    })
    return { tools, signInTo }
  }

  /** A few are asked at once, as each answer is read whole. */
  async #offers(servers: readonly McpServerRow[], auth: AuthContext) {
    const until = this.#parts.clock.now() + listWithinMs
    const heard = await pMap(servers, server => this.#heard(server, auth, until), {
      concurrency: askedAtOnce,
    })
    return heard.filter(one => one !== undefined)
  }

  /** The offer is undefined if the caller has to sign in first. */
  async #heard(
    server: McpServerRow,
    auth: AuthContext,
    until: number,
  ): Promise<{ server: McpServerRow; offer: Offer | undefined } | undefined> {
    const { rows, log, signIns } = this.#parts
    const { workspaceId, mcpServerId } = server
    try {
      const signIn = await signIns.signInOf(server, auth)
      if (signIn === undefined) return { server, offer: undefined }
      const offer = await this.#offer(server, auth, signIn, until)
      if (server.reviewedTools !== null) return { server, offer }
      const pinned = await pinFirst(rows, server, offer)
      log.info({ workspaceId, mcpServerId }, 'an MCP server was heard first: its tools are taken as they are')
      return pinned && { server: pinned, offer }
    } catch (error) {
      if (error instanceof McpFailure && error.code === 'sign_in_required')
        return { server, offer: undefined }
      log.warn({ workspaceId, mcpServerId, error }, 'an MCP server did not list its tools')
      return undefined
    }
  }

  /** @param signIn  sign-in of the caller, because a server can offer each caller other tools; null for none */
  async #offer(
    server: McpServerRow,
    auth: AuthContext,
    signIn: string | null,
    until: number,
  ): Promise<Offer> {
    const { workspaceId, mcpServerId, updatedAt, url, credentialRef } = server
    const key = JSON.stringify([workspaceId, mcpServerId, updatedAt, url, credentialRef, signIn])
    const known = this.#known.get(key)
    if (known) return known
    if (this.#parts.clock.now() >= until) throw new Error('the servers before it took too long')
    if (this.#parts.ttlMs === 0) return this.#ask(server, auth)
    const asked = this.#asked.get(key) ?? this.#ask(server, auth).finally(() => this.#asked.delete(key))
    this.#asked.set(key, asked)
    const offer = await asked
    this.#known.set(key, offer)
    return offer
  }

  /** What a server says in time. */
  async #ask(server: McpServerRow, auth: AuthContext): Promise<Offer> {
    const { clock, listTools, signIns } = this.#parts
    const callable = signIns.callable(server, auth)
    return offerOf(await within(clock, answerTimeoutMs, signal => listTools(callable, signal)))
  }

  /** Those that the server's row allows, and that are what they were when they were reviewed. */
  #toolsOf(server: McpServerRow, auth: AuthContext, { tools }: Offer): Tool[] {
    const { mcpServerId: id, label } = server
    return tools
      .filter(tool => isOffered(server, tool))
      .map(tool =>
        mcpTool({ id, label, isRegistered: true }, tool, (call, signal) =>
          this.#call(server, auth, tool, call, signal),
        ),
      )
  }

  /**
   * The server is read again: what was changed since the list, holds, and the credential is resolved now.
   *
   * @throws ToolError, McpFailure
   */
  async #call(
    { workspaceId, mcpServerId, url }: McpServerRow,
    auth: AuthContext,
    tool: OfferedTool,
    call: McpCall,
    signal: AbortSignal,
  ): Promise<McpAnswer> {
    const now = (await this.#parts.rows.get(tables.mcpServers, [workspaceId, mcpServerId]))?.row
    if (!now?.enabled || now.url !== url || !isOffered(now, tool))
      throw new ToolError(`the tool ${tool.name} is not offered any more`)
    return this.#parts.callTool(this.#parts.signIns.callable(now, auth), call, signal)
  }
}

function isOffered({ allowedTools, reviewedTools }: McpServerRow, { name, hash }: OfferedTool): boolean {
  const isAllowed = allowedTools?.includes(name) ?? true
  return isAllowed && reviewedTools !== null && reviewOf(reviewedTools, name)?.hash === hash
}
