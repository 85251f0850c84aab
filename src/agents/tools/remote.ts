import { LRUCache } from 'lru-cache'
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import type { AvailableTool } from '../../contract/agents.ts'
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
const answerWithinMs = 5_000
const serversMax = 200
const serversRemembered = 1_000
/** Tools of one server; more are left out. */
const toolsMax = 500
const descriptionCharsMax = 1_024
const schemaCharsMax = 16_384
const anyObject = { type: 'object', additionalProperties: true }

/** The tools of the MCP servers that workspaces have registered. @see contract 7.3, 9 */
export class RemoteTools {
  readonly #parts: RemoteToolsParts
  /** By the server's row as it was last changed, so that a change through any process is a new question. */
  readonly #asked: LRUCache<string, Promise<readonly McpTool[]>>

  constructor(parts: RemoteToolsParts) {
    this.#parts = parts
    const perf = { now: () => parts.clock.now() }
    this.#asked = new LRUCache({ max: serversRemembered, ttl: parts.ttlMs, ttlResolution: 0, perf })
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
    const offered = await Promise.all(servers.map(server => this.#offered(server)))
    return offered.flat()
  }

  async #offered(server: McpServerRow): Promise<AvailableTool[]> {
    const { workspaceId, mcpServerId, label, allowedTools } = server
    try {
      const tools = await this.#tools(server)
      return tools
        .filter(({ name }) => allowedTools?.includes(name) ?? true)
        .map(({ name, description, inputSchema }) => ({
          id: `mcp:${mcpServerId}:${name}`,
          description: description.slice(0, descriptionCharsMax),
          source: 'mcp',
          inputSchema: bounded(inputSchema),
          serverId: mcpServerId,
          serverLabel: label,
        }))
    } catch (error) {
      this.#parts.log.warn({ workspaceId, mcpServerId, error }, 'an MCP server did not list its tools')
      return []
    }
  }

  async #tools(server: McpServerRow): Promise<readonly McpTool[]> {
    if (this.#parts.ttlMs === 0) return this.#ask(server)
    const { workspaceId, mcpServerId, updatedAt, url, credentialRef } = server
    const key = JSON.stringify([workspaceId, mcpServerId, updatedAt, url, credentialRef])
    const known = this.#asked.get(key)
    if (known) return known
    const asked = this.#ask(server)
    this.#asked.set(key, asked)
    try {
      return await asked
    } catch (error) {
      if (this.#asked.peek(key) === asked) this.#asked.delete(key)
      throw error
    }
  }

  /** What a server says in time, and no more of it than a model is given. */
  async #ask(server: McpServerRow): Promise<readonly McpTool[]> {
    const { clock, listTools } = this.#parts
    const giveUp = new AbortController()
    const late = new Error(`no answer within ${answerWithinMs} ms`)
    const settled = clock.after(answerWithinMs, () => giveUp.abort(late))
    const tooLate = new Promise<never>((_, fail) => {
      giveUp.signal.addEventListener('abort', () => fail(late))
    })
    try {
      const tools = await Promise.race([listTools(server, giveUp.signal), tooLate])
      return tools.slice(0, toolsMax)
    } finally {
      settled()
    }
  }
}

/** A schema that is too long, or not of an object, would be refused by model providers. */
function bounded(schema: Record<string, unknown>): Record<string, unknown> {
  const fits = schema.type === 'object' && JSON.stringify(schema).length <= schemaCharsMax
  return fits ? schema : anyObject
}
