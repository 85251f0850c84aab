import { requireWorkspace } from '../../access/workspace.ts'
import type { Agent, AvailableTool } from '../../contract/agents.ts'
import { WbError } from '../../contract/errors.ts'
import { namespaced, ofServer } from '../../contract/tool-ids.ts'
import type { Workspace } from '../../contract/workspaces.ts'
import type { RowStore } from '../../storage/rows.ts'
import type { DeclaredTools } from './declared.ts'
import type { RemoteTools } from './remote.ts'
import type { Tool } from './tool.ts'

export interface ToolboxParts {
  readonly rows: RowStore
  /** Of servers that the workspace has registered. */
  readonly remote: Pick<RemoteTools, 'list'>
  /** Of servers that the configuration gives it. */
  readonly declared: Pick<DeclaredTools, 'list'>
  /** Those that every agent has unless it names its tools. */
  readonly builtin: readonly Tool[]
  /** Those that the configuration allows, and that the database of a workspace offers. */
  readonly more: (workspace: Workspace) => readonly Tool[]
}

/** What agents can be given, and have. */
export class Toolbox {
  constructor(private readonly parts: ToolboxParts) {}

  /**
   * Every tool that agents of a workspace can be given: built-in, of the runtime, of its database, of MCP servers.
   *
   * @throws workspace_not_found
   */
  async available(workspaceId: string): Promise<AvailableTool[]> {
    const own = this.#own(await requireWorkspace(this.parts.rows, workspaceId))
    return [...own, ...(await this.#ofServers(workspaceId))]
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
    const offered = new Set((await this.#offered(workspaceId, named)).map(({ id }) => id))
    const unresolved = named.filter(id => !offered.has(id))
    if (unresolved.length > 0)
      throw new WbError(
        'agent_tool_unresolved',
        `toolIds: the workspace does not offer ${unresolved.join(', ')}`,
      )
  }

  /**
   * The tools that an agent has now, in the order of the list: all built-in ones where it names none, else those that
   * it names and that are there. Only servers that it names are asked.
   *
   * @throws workspace_not_found
   * @throws the signal's reason  nobody waits any longer
   */
  async forAgent(
    workspaceId: string,
    { toolIds }: Pick<Agent, 'toolIds'>,
    signal: AbortSignal,
  ): Promise<readonly Tool[]> {
    if (toolIds.length === 0) return this.parts.builtin
    const offered = await this.#offered(workspaceId, toolIds)
    signal.throwIfAborted()
    return offered.filter(({ id }) => toolIds.includes(id))
  }

  async #offered(workspaceId: string, toolIds: readonly string[]): Promise<Tool[]> {
    const servers = new Set(toolIds.flatMap(id => ofServer(id)?.server ?? []))
    const own = this.#own(await requireWorkspace(this.parts.rows, workspaceId))
    return servers.size === 0 ? own : [...own, ...(await this.#ofServers(workspaceId, servers))]
  }

  async #ofServers(workspaceId: string, only?: ReadonlySet<string>): Promise<Tool[]> {
    const { declared, remote } = this.parts
    const tools = await Promise.all([declared.list(workspaceId, only), remote.list(workspaceId, only)])
    return tools.flat()
  }

  #own(workspace: Workspace): Tool[] {
    return [...this.parts.builtin, ...this.parts.more(workspace)]
  }
}
