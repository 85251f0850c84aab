import { decideAccess } from '../access/authorize.ts'
import type { Caller } from '../access/caller.ts'
import { requireWorkspace } from '../access/require-workspace.ts'
import { subjectName } from '../access/subject.ts'
import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import { needs } from '../contract/access.ts'
import type { SnippetQuery, Snippets, TrafficEntry, Verification } from '../contract/connect.ts'
import type { RowStore } from '../storage/rows.ts'
import { buildSnippets } from './connect-snippets.ts'
import type { McpTraffic } from './mcp-traffic.ts'

export interface ConnectionsDependencies {
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
 * Code that connects external agents to a workspace, and the recent calls of these agents.
 *
 * @see docs/connecting.md
 */
export class Connections {
  constructor(private readonly deps: ConnectionsDependencies) {}

  /**
   * Returns code that connects agent frameworks to the workspace.
   *
   * @param origin  scheme, host and port at which the caller reached the runtime
   * @throws workspace_not_found
   */
  async snippets(
    workspaceId: string,
    { knowledgeBaseId, apiKeyEnvVar }: SnippetQuery,
    origin: string,
  ): Promise<Snippets> {
    await requireWorkspace(this.deps.rows, workspaceId)
    const restBaseUrl = `${origin}/api/v1`
    const workspaceUrl = `${restBaseUrl}/workspaces/${workspaceId}`
    const base = knowledgeBaseId === undefined ? '' : `/knowledge-bases/${knowledgeBaseId}`
    const mcpUrl = `${workspaceUrl}/mcp`
    return {
      workspaceId,
      knowledgeBaseId: knowledgeBaseId ?? null,
      publicBaseUrl: origin,
      mcpUrl,
      restBaseUrl,
      mcpEnabled: this.deps.mcpEnabled,
      apiKeyEnvVar,
      targets: buildSnippets({ searchUrl: `${workspaceUrl}${base}/search`, mcpUrl, apiKeyEnvVar }),
    }
  }

  /** Checks that the tools of the workspace can be listed over MCP. @throws workspace_not_found */
  async verify(workspaceId: string, caller: Caller): Promise<Verification> {
    const { rows, clock, mcpEnabled, listTools } = this.deps
    await requireWorkspace(rows, workspaceId)
    const emptyResult = { ok: false, mcpEnabled, toolCount: 0, tools: [], latencyMs: 0 }
    if (!mcpEnabled) return { ...emptyResult, error: null }
    const startedAt = clock.now()
    const elapsedMs = () => Math.round(clock.now() - startedAt)
    try {
      const tools = [...(await listTools(workspaceId, caller))].sort()
      return { ok: true, mcpEnabled, toolCount: tools.length, tools, latencyMs: elapsedMs(), error: null }
    } catch (error) {
      this.deps.log.error({ workspaceId, error }, 'the tools cannot be listed over MCP')
      const message = 'the tools cannot be listed over MCP'
      return { ...emptyResult, latencyMs: elapsedMs(), error: { code: 'verify_failed', message } }
    }
  }

  /**
   * Returns the latest calls, and a summary of all stored calls. With row-level access, returns only the calls of the
   * caller, unless it has the scope `manage:access`.
   *
   * @throws workspace_not_found
   */
  async traffic(workspaceId: string, { limit }: { limit: number }, caller: Pick<Caller, 'auth'>) {
    const { rows, traffic, mcpEnabled } = this.deps
    const { rlacEnabled } = await requireWorkspace(rows, workspaceId)
    const seesAll = !rlacEnabled || decideAccess({ rule: needs('manage:access'), workspaceId }, caller).allow
    const calls = traffic.list(workspaceId, seesAll ? undefined : subjectName(caller.auth))
    return { workspaceId, mcpEnabled, entries: calls.slice(0, limit), summary: summaryOf(calls) }
  }
}

/** Counts denied calls as failures. */
function summaryOf(calls: readonly TrafficEntry[]) {
  const total = calls.length
  const successes = calls.filter(({ outcome }) => outcome === 'success').length
  return { total, successes, failures: total - successes }
}
