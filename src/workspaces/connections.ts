import type { Caller } from '../access/caller.ts'
import { requireWorkspace } from '../access/require-workspace.ts'
import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { SnippetQuery, Snippets, TrafficEntry, Verification } from '../contract/connect.ts'
import type { RowStore } from '../storage/rows.ts'
import { buildSnippets } from './connect-snippets.ts'
import type { McpTraffic } from './mcp-traffic.ts'

export interface ConnectionsParts {
  readonly rows: RowStore
  readonly clock: Clock
  readonly log: Log
  readonly traffic: McpTraffic
  /** True unless the configuration disables MCP. */
  readonly mcpEnabled: boolean
  /** Returns the names of the tools that MCP offers to the caller. */
  readonly listTools: (workspaceId: string, caller: Caller) => Promise<readonly string[]>
}

/**
 * Instructions for connecting external agents to a workspace, and their recent calls.
 *
 * @see docs/connecting.md
 */
export class Connections {
  constructor(private readonly parts: ConnectionsParts) {}

  /**
   * Returns code that connects agent frameworks to the workspace.
   *
   * @param origin  scheme, host and port under which the caller reached the runtime
   * @throws workspace_not_found
   */
  async snippets(
    workspaceId: string,
    { knowledgeBaseId, apiKeyEnvVar }: SnippetQuery,
    origin: string,
  ): Promise<Snippets> {
    await requireWorkspace(this.parts.rows, workspaceId)
    const restBaseUrl = `${origin}/api/v1`
    const place = `${restBaseUrl}/workspaces/${workspaceId}`
    const base = knowledgeBaseId === undefined ? '' : `/knowledge-bases/${knowledgeBaseId}`
    const mcpUrl = `${place}/mcp`
    return {
      workspaceId,
      knowledgeBaseId: knowledgeBaseId ?? null,
      publicBaseUrl: origin,
      mcpUrl,
      restBaseUrl,
      mcpEnabled: this.parts.mcpEnabled,
      apiKeyEnvVar,
      targets: buildSnippets({ searchUrl: `${place}${base}/search`, mcpUrl, apiKeyEnvVar }),
    }
  }

  /** @throws workspace_not_found */
  async verify(workspaceId: string, caller: Caller): Promise<Verification> {
    const { rows, clock, mcpEnabled, listTools } = this.parts
    await requireWorkspace(rows, workspaceId)
    const none = { ok: false, mcpEnabled, toolCount: 0, tools: [], latencyMs: 0 }
    if (!mcpEnabled) return { ...none, error: null }
    const startedAt = clock.now()
    const took = () => Math.round(clock.now() - startedAt)
    try {
      const tools = [...(await listTools(workspaceId, caller))].sort()
      return { ok: true, mcpEnabled, toolCount: tools.length, tools, latencyMs: took(), error: null }
    } catch (error) {
      this.parts.log.error({ workspaceId, error }, 'the tools cannot be listed by MCP')
      const message = 'the tools cannot be listed by MCP'
      return { ...none, latencyMs: took(), error: { code: 'verify_failed', message } }
    }
  }

  /**
   * Returns the latest calls, and a summary of all stored ones.
   *
   * @throws workspace_not_found
   */
  async traffic(workspaceId: string, { limit }: { limit: number }) {
    await requireWorkspace(this.parts.rows, workspaceId)
    const { traffic, mcpEnabled } = this.parts
    const calls = traffic.of(workspaceId)
    return { workspaceId, mcpEnabled, entries: calls.slice(0, limit), summary: summaryOf(calls) }
  }
}

/** Counts denied calls as failures. */
function summaryOf(calls: readonly TrafficEntry[]) {
  const total = calls.length
  const successes = calls.filter(({ outcome }) => outcome === 'success').length
  return { total, successes, failures: total - successes }
}
