import { LRUCache } from 'lru-cache'
import pMap from 'p-map'
import type { Clock } from '../../base/clock.ts'
import { within } from '../../base/deadline.ts'
import type { Log } from '../../base/log.ts'
import type { AvailableTool } from '../../contract/agents.ts'
import { limits } from '../../contract/limits.ts'
import type { McpTool } from '../../models/mcp.ts'
import type { RowStore } from '../../storage/rows.ts'
import { type McpServerRow, tables } from '../../storage/tables.ts'

/** Ask a server for its tools; fails when it cannot be reached. */
export type ListRemoteTools = (server: McpServerRow, signal: AbortSignal) => Promise<readonly McpTool[]>

export interface RemoteToolsParts {
  readonly rows: RowStore
  readonly clock: Clock
  readonly log: Log
  readonly listTools: ListRemoteTools
  /** How long what a server said is believed, in milliseconds; 0 is not at all. */
  readonly ttlMs: number
}

/** A server that says nothing for as long offers nothing. */
const answerTimeoutMs = 5_000
const serversMax = 200
const askedAtOnce = 8
/** Once a list has taken this long, no other server is asked for it. */
const listWithinMs = 10_000
/** What all servers said is kept up to this length, and of one list no more is given. */
const charsRemembered = 64_000_000
const charsListed = 16_000_000
/** Tools of one server; more are left out. */
const toolsMax = 500
/** Of one server; what does not fit is left out. */
const charsMax = 1_000_000
const descriptionCharsMax = 1_024
const schemaCharsMax = 16_384
const anyObject = { type: 'object', additionalProperties: true }

/** What a server said, as much of it as a model is given. */
interface Offer {
  readonly tools: readonly McpTool[]
  /** Length of it all. */
  readonly chars: number
}

/** The tools of the MCP servers that workspaces have registered. @see contract 7.3, 9 */
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
   * What the enabled servers of a workspace offer, servers by id. One that fails offers nothing, and is named in the
   * log.
   *
   * @param only  ids of servers that are asked; all when left out
   */
  async list(workspaceId: string, only?: ReadonlySet<string>): Promise<AvailableTool[]> {
    const found = await this.#parts.rows.list(tables.mcpServers, {
      index: 'byWorkspace',
      prefix: [workspaceId],
      limit: serversMax,
    })
    const servers = found
      .map(({ row }) => row)
      .filter(({ enabled, mcpServerId }) => enabled && (only?.has(mcpServerId) ?? true))
    const offers = await this.#offers(servers)
    let chars = 0
    return servers.flatMap((server, at) => {
      chars += offers[at]!.chars
      return chars > charsListed ? [] : offeredBy(server, offers[at]!)
    })
  }

  /** A few are asked at once, as each answer is read whole. */
  #offers(servers: readonly McpServerRow[]): Promise<Offer[]> {
    const until = this.#parts.clock.now() + listWithinMs
    return pMap(servers, server => this.#offer(server, until), { concurrency: askedAtOnce })
  }

  async #offer(server: McpServerRow, until: number): Promise<Offer> {
    const { workspaceId, mcpServerId, updatedAt, url, credentialRef } = server
    const key = JSON.stringify([workspaceId, mcpServerId, updatedAt, url, credentialRef])
    try {
      const known = this.#known.get(key)
      if (known) return known
      if (this.#parts.clock.now() >= until) throw new Error('the servers before it took too long')
      if (this.#parts.ttlMs === 0) return await this.#ask(server)
      const asked = this.#asked.get(key) ?? this.#ask(server).finally(() => this.#asked.delete(key))
      this.#asked.set(key, asked)
      const offer = await asked
      this.#known.set(key, offer)
      return offer
    } catch (error) {
      this.#parts.log.warn({ workspaceId, mcpServerId, error }, 'an MCP server did not list its tools')
      return { tools: [], chars: 0 }
    }
  }

  /** What a server says in time. */
  async #ask(server: McpServerRow): Promise<Offer> {
    const { clock, listTools } = this.#parts
    return offerOf(await within(clock, answerTimeoutMs, signal => listTools(server, signal)))
  }
}

/** What is kept of a server's answer: copies, as a part of a text keeps all of it in memory. */
function offerOf(tools: readonly McpTool[]): Offer {
  const kept: McpTool[] = []
  let chars = 0
  for (const { name, description, inputSchema } of tools.slice(0, toolsMax)) {
    const text = JSON.stringify({
      name,
      description: description.slice(0, descriptionCharsMax),
      inputSchema: bounded(inputSchema),
    })
    chars += text.length
    if (chars > charsMax) return { tools: kept, chars: chars - text.length }
    kept.push(JSON.parse(text))
  }
  return { tools: kept, chars }
}

/** Tools of a server as they are listed; one whose id no agent could name is none. */
function offeredBy({ mcpServerId, label, allowedTools }: McpServerRow, { tools }: Offer): AvailableTool[] {
  const allowed = allowedTools && new Set(allowedTools)
  return tools
    .filter(({ name }) => allowed?.has(name) ?? true)
    .map(({ name, description, inputSchema }) => ({
      id: `mcp:${mcpServerId}:${name}`,
      description,
      source: 'mcp' as const,
      inputSchema,
      serverId: mcpServerId,
      serverLabel: label,
    }))
    .filter(({ id }) => id.length <= limits.toolIdChars)
}

/** A schema that is too long, or not of an object, would be refused by model providers. */
function bounded(schema: Record<string, unknown>): Record<string, unknown> {
  const fits = schema.type === 'object' && JSON.stringify(schema).length <= schemaCharsMax
  return fits ? schema : anyObject
}
