import pMap from 'p-map'
import type { Clock } from '../../base/clock.ts'
import { withTimeout } from '../../base/deadline.ts'
import type { Log } from '../../base/log.ts'
import { limits } from '../../contract/limits.ts'
import type { StdioServer } from '../../models/mcp/mcp-process.ts'
import type { Models } from '../../models/open.ts'
import { createOffer, type McpOffer } from '../../workspaces/mcp-offer.ts'
import { createMcpTool, listTimeoutMs } from './mcp-tool.ts'
import type { Tool } from './tool.ts'

export interface DeclaredToolsDependencies {
  readonly clock: Clock
  readonly log: Log
  /** MCP servers that the configuration declares as commands. */
  readonly declared: readonly StdioServer[]
  readonly processes: Models['processes']
  /** Time for which a server's list of tools is cached, in milliseconds; 0 disables the cache. */
  readonly ttlMs: number
}

const concurrentServersMax = 4

/**
 * Tools of the MCP servers that the configuration declares as commands. They need no review, because the author of the
 * configuration can already run any command.
 *
 * @see docs/security.md#rule-9
 */
export class DeclaredTools {
  /** Cached offers, by server ID. */
  readonly #cachedOffers = new Map<
    string,
    { readonly offer: Promise<McpOffer>; readonly expiresAtMs: number }
  >()

  constructor(private readonly deps: DeclaredToolsDependencies) {}

  /**
   * Returns the tools that the servers offer to a workspace. If a server fails, logs the failure and omits its tools.
   *
   * @param serverIds  IDs of the servers whose tools to list; all by default
   */
  async list(workspaceId: string, serverIds?: ReadonlySet<string>): Promise<Tool[]> {
    const servers = this.deps.declared.filter(
      ({ id, enabled, workspaces }) =>
        enabled && (workspaces?.includes(workspaceId) ?? true) && (serverIds?.has(id) ?? true),
    )
    const tools = await pMap(servers, server => this.#toolsOf(server), { concurrency: concurrentServersMax })
    return tools.flat()
  }

  async #toolsOf(server: StdioServer): Promise<Tool[]> {
    const toolServer = { id: server.id, label: server.id, isRegistered: false }
    try {
      const { tools } = await this.#offer(server)
      return tools
        .filter(({ name }) => server.allowedTools?.includes(name) ?? true)
        .map(tool =>
          createMcpTool(toolServer, tool, (...call) => this.deps.processes.callTool(server, ...call)),
        )
        .filter(({ id }) => id.length <= limits.toolIdChars)
    } catch (error) {
      const reason = error instanceof Error ? error.message : ''
      this.deps.log.warn({ server: server.id, reason }, 'a declared MCP server did not list its tools')
      return []
    }
  }

  /** Returns the tools of a server. Calls within `ttlMs` share one request. */
  #offer(server: StdioServer): Promise<McpOffer> {
    const { clock, processes, ttlMs } = this.deps
    const cached = this.#cachedOffers.get(server.id)
    if (cached && clock.now() < cached.expiresAtMs) return cached.offer
    const offer = withTimeout(clock, listTimeoutMs, signal => processes.listTools(server, signal)).then(
      createOffer,
    )
    this.#cachedOffers.set(server.id, { offer, expiresAtMs: clock.now() + ttlMs })
    offer.catch(() => {
      if (this.#cachedOffers.get(server.id)?.offer === offer) this.#cachedOffers.delete(server.id)
    })
    return offer
  }
}
