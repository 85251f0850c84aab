import type { AuthContext } from '../../access/subject.ts'
import { requireWorkspace } from '../../access/workspace.ts'
import type { Agent, AvailableTool } from '../../contract/agents.ts'
import { WbError } from '../../contract/errors.ts'
import { namespaced, ofServer } from '../../contract/tool-ids.ts'
import type { Workspace } from '../../contract/workspaces.ts'
import type { RowStore } from '../../storage/rows.ts'
import { loginLine } from '../../workspaces/mcp-sign-ins.ts'
import type { DeclaredTools } from './declared.ts'
import type { RemoteTools, ToolOffer } from './remote.ts'
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
  async available(workspaceId: string, auth: AuthContext): Promise<AvailableTool[]> {
    const own = this.#own(await requireWorkspace(this.parts.rows, workspaceId))
    return [...own, ...(await this.#ofServers(workspaceId, auth)).tools]
  }

  /**
   * Check that the workspace offers the tools of other sources that are named. Only servers that are named are asked.
   *
   * @throws workspace_not_found
   * @throws agent_tool_unresolved  with all that it does not offer
   */
  async require(workspaceId: string, toolIds: readonly string[], auth: AuthContext): Promise<void> {
    const named = toolIds.filter(id => namespaced.test(id))
    if (named.length === 0) return
    const { tools, signInTo } = await this.#offered(workspaceId, named, auth)
    const offered = new Set(tools.map(({ id }) => id))
    const unresolved = named.filter(id => !offered.has(id))
    const hint = signInTo[0] && `Sign in to the MCP server first: ${loginLine(signInTo[0])}`
    if (unresolved.length > 0)
      throw new WbError(
        'agent_tool_unresolved',
        `toolIds: the workspace does not offer ${unresolved.join(', ')}`,
        hint === undefined ? {} : { hint },
      )
  }

  /**
   * The tools that an agent has now, in the order of the list: all built-in ones where it names none, else those that
   * it names and that are there. Only servers that it names are asked.
   *
   * @param auth  caller of the turn, in whose name tools are called
   * @throws workspace_not_found
   * @throws the signal's reason  nobody waits any longer
   */
  async forAgent(
    { workspaceId, toolIds }: Pick<Agent, 'workspaceId' | 'toolIds'>,
    auth: AuthContext,
    signal: AbortSignal,
  ): Promise<ToolOffer> {
    if (toolIds.length === 0) return { tools: this.parts.builtin, signInTo: [] }
    const { tools, signInTo } = await this.#offered(workspaceId, toolIds, auth)
    signal.throwIfAborted()
    return { tools: tools.filter(({ id }) => toolIds.includes(id)), signInTo }
  }

  async #offered(workspaceId: string, toolIds: readonly string[], auth: AuthContext): Promise<ToolOffer> {
    const servers = new Set(toolIds.flatMap(id => ofServer(id)?.server ?? []))
    const own = this.#own(await requireWorkspace(this.parts.rows, workspaceId))
    if (servers.size === 0) return { tools: own, signInTo: [] }
    const { tools, signInTo } = await this.#ofServers(workspaceId, auth, servers)
    return { tools: [...own, ...tools], signInTo }
  }

  async #ofServers(workspaceId: string, auth: AuthContext, only?: ReadonlySet<string>): Promise<ToolOffer> {
    const { declared, remote } = this.parts
    const [ofCommands, registered] = await Promise.all([
      declared.list(workspaceId, only),
      remote.list(workspaceId, auth, only),
    ])
    return { tools: [...ofCommands, ...registered.tools], signInTo: registered.signInTo }
  }

  #own(workspace: Workspace): Tool[] {
    return [...this.parts.builtin, ...this.parts.more(workspace)]
  }
}
