import { requireWorkspace } from '../access/workspace.ts'
import type { SnippetQuery, Snippets, TrafficEntry, Verification } from '../contract/connect.ts'
import type { RowStore } from '../storage/rows.ts'
import { snippets } from './connect-snippets.ts'
import type { Traffic } from './connect-traffic.ts'

/** No tools are served by MCP in this version. */
const mcpEnabled = false

/** How agents of other programs come to a workspace, and what came. @see contract 15 */
export class Connections {
  /** @param parts.mcpWanted  the configuration does not switch MCP off */
  constructor(private readonly parts: { rows: RowStore; traffic: Traffic; mcpWanted: boolean }) {}

  /**
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
      mcpEnabled,
      apiKeyEnvVar,
      targets: snippets({ searchUrl: `${place}${base}/search`, mcpUrl, apiKeyEnvVar }),
    }
  }

  /** @throws workspace_not_found */
  async verify(workspaceId: string): Promise<Verification> {
    await requireWorkspace(this.parts.rows, workspaceId)
    const error = { code: 'verify_not_wired', message: 'this version serves no tools by MCP' } as const
    return {
      ok: false,
      mcpEnabled,
      toolCount: 0,
      tools: [],
      latencyMs: 0,
      error: this.parts.mcpWanted ? error : null,
    }
  }

  /**
   * The latest calls, and a summary of all that are kept.
   *
   * @throws workspace_not_found
   */
  async traffic(workspaceId: string, { limit }: { limit: number }) {
    await requireWorkspace(this.parts.rows, workspaceId)
    const calls = this.parts.traffic.of(workspaceId)
    return { workspaceId, mcpEnabled, entries: calls.slice(0, limit), summary: summaryOf(calls) }
  }
}

/** A call that was denied is a failure. */
function summaryOf(calls: readonly TrafficEntry[]) {
  const total = calls.length
  const successes = calls.filter(({ outcome }) => outcome === 'success').length
  return { total, successes, failures: total - successes }
}
