import { requireWorkspace } from '../../access/workspace.ts'
import type { Config } from '../../config/schema.ts'
import type { AvailableTool } from '../../contract/agents.ts'
import { WbError } from '../../contract/errors.ts'
import type { Workspace } from '../../contract/workspaces.ts'
import type { RowStore } from '../../storage/rows.ts'
import { builtinTools, dataApiTool, fetchTool, listed, type OwnTool, webSearchTool } from './builtin.ts'
import type { RemoteTools } from './remote.ts'

/** Ids that name somebody's tool; any other is taken as it is. @see contract 7.3 */
const namespaced = /^(?:mcp|native|astra):/
const ofServer = /^mcp:([^:]*):/

export type ToolSettings = Config['chat']['tools']

/** What agents can be given. */
export class Tools {
  constructor(
    private readonly parts: {
      rows: RowStore
      remote: Pick<RemoteTools, 'list'>
      settings: ToolSettings
    },
  ) {}

  /**
   * Every tool that agents of a workspace can be given: built-in, of the runtime, of its database, of its MCP servers.
   *
   * @throws workspace_not_found
   */
  async available(workspaceId: string): Promise<AvailableTool[]> {
    const { rows, settings } = this.parts
    const own = ownTools(await requireWorkspace(rows, workspaceId), settings)
    return [...own.map(listed), ...(await this.parts.remote.list(workspaceId))]
  }

  /**
   * Check that the workspace offers the tools of other sources that are named. Only servers that are named are asked.
   *
   * @throws workspace_not_found
   * @throws agent_tool_unresolved  with all that it does not offer
   */
  async require(workspaceId: string, toolIds: readonly string[]): Promise<void> {
    const named = toolIds.filter(id => namespaced.test(id))
    if (named.length === 0) return
    const { rows, settings } = this.parts
    const servers = new Set(named.flatMap(id => ofServer.exec(id)?.[1] ?? []))
    const own = ownTools(await requireWorkspace(rows, workspaceId), settings)
    const remote = servers.size === 0 ? [] : await this.parts.remote.list(workspaceId, servers)
    const offered = new Set([...own, ...remote].map(({ id }) => id))
    const unresolved = named.filter(id => !offered.has(id))
    if (unresolved.length > 0)
      throw new WbError(
        'agent_tool_unresolved',
        `toolIds: the workspace does not offer ${unresolved.join(', ')}`,
      )
  }
}

function ownTools({ kind }: Workspace, { fetch, webSearch }: ToolSettings): OwnTool[] {
  const canSearch = webSearch.enabled && webSearch.provider !== null && webSearch.apiKeyRef !== null
  return [
    ...builtinTools,
    ...(fetch.enabled ? [fetchTool] : []),
    ...(canSearch ? [webSearchTool(webSearch.maxResults)] : []),
    ...(kind === 'astra' || kind === 'hcd' ? [dataApiTool] : []),
  ]
}
