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

export interface DeclaredToolsParts {
  readonly clock: Clock
  readonly log: Log
  readonly declared: readonly StdioServer[]
  readonly processes: Models['processes']
  /** Time for which a server's list of tools is cached, in milliseconds; 0 disables the cache. */
  readonly ttlMs: number
}

const concurrentServersMax = 4

/**
 * Tools of the MCP servers that the configuration declares as commands. They need no review, because the
 * author of the configuration already runs arbitrary commands.
 *
 * @see docs/security.md#rule-9
 */
export class DeclaredTools {
  /** Cached lists by server ID. */
  readonly #known = new Map<string, { readonly offer: Promise<McpOffer>; readonly untilMs: number }>()

  constructor(private readonly parts: DeclaredToolsParts) {}

  /**
   * Returns the tools that the servers offer to a workspace. A server that fails is logged and offers none.
   *
   * @param only  IDs of the servers to request; all by default
   */
  async list(workspaceId: string, only?: ReadonlySet<string>): Promise<Tool[]> {
    const given = this.parts.declared.filter(
      ({ id, enabled, workspaces }) =>
        enabled && (workspaces?.includes(workspaceId) ?? true) && (only?.has(id) ?? true),
    )
    const tools = await pMap(given, server => this.#toolsOf(server), { concurrency: concurrentServersMax })
    return tools.flat()
  }

  async #toolsOf(server: StdioServer): Promise<Tool[]> {
    const as = { id: server.id, label: server.id, isRegistered: false }
    try {
      const { tools } = await this.#offer(server)
      return tools
        .filter(({ name }) => server.allowedTools?.includes(name) ?? true)
        .map(tool => createMcpTool(as, tool, (...call) => this.parts.processes.callTool(server, ...call)))
        .filter(({ id }) => id.length <= limits.toolIdChars)
    } catch (error) {
      const reason = error instanceof Error ? error.message : ''
      this.parts.log.warn({ server: server.id, reason }, 'a declared MCP server did not list its tools')
      return []
    }
  }

  /** Returns the tools of a server. Calls within `ttlMs` share one request. */
  #offer(server: StdioServer): Promise<McpOffer> {
    const { clock, processes, ttlMs } = this.parts
    const known = this.#known.get(server.id)
    if (known && clock.now() < known.untilMs) return known.offer
    const offer = withTimeout(clock, listTimeoutMs, signal => processes.listTools(server, signal)).then(
      createOffer,
    )
    this.#known.set(server.id, { offer, untilMs: clock.now() + ttlMs })
    offer.catch(() => {
      if (this.#known.get(server.id)?.offer === offer) this.#known.delete(server.id)
    })
    return offer
  }
}
