import { requireWorkspace } from '../../access/require-workspace.ts'
import type { AuthContext } from '../../access/subject.ts'
import type { Agent, AvailableTool } from '../../contract/agents.ts'
import { WbError } from '../../contract/errors.ts'
import { namespacedId, parseMcpToolId } from '../../contract/tool-ids.ts'
import type { Workspace } from '../../contract/workspaces.ts'
import type { RowStore } from '../../storage/rows.ts'
import { mcpLoginCommand } from '../../workspaces/mcp-sign-ins.ts'
import type { DeclaredTools } from './declared-tools.ts'
import type { RemoteTools, ToolOffer } from './remote-tools.ts'
import type { Tool } from './tool.ts'

export interface ToolboxDependencies {
  readonly rows: RowStore
  /** Tools of servers that the workspace registered. */
  readonly remote: Pick<RemoteTools, 'list'>
  /** Tools of servers that the configuration declares. */
  readonly declared: Pick<DeclaredTools, 'list'>
  /** Built-in tools. An agent that lists no tools can use all of them. */
  readonly builtin: readonly Tool[]
  /** Returns the tools that the configuration enables, and the tools for the workspace's database. */
  readonly extraTools: (workspace: Workspace) => readonly Tool[]
}

/** Tools that are available to agents. */
export class Toolbox {
  constructor(private readonly deps: ToolboxDependencies) {}

  /**
   * Returns all tools that agents of a workspace can use: built-in tools, tools that the configuration enables, tools
   * for the workspace's database, and tools of MCP servers.
   *
   * @throws workspace_not_found
   */
  async available(workspaceId: string, auth: AuthContext): Promise<AvailableTool[]> {
    const runtimeTools = this.#runtimeTools(await requireWorkspace(this.deps.rows, workspaceId))
    return [...runtimeTools, ...(await this.#serverTools(workspaceId, auth)).tools]
  }

  /**
   * Checks that tools are available in the workspace. Sends requests only to the servers of these tools.
   *
   * @throws workspace_not_found
   * @throws agent_tool_unresolved  some tools are not available; the message lists them
   */
  async require(workspaceId: string, toolIds: readonly string[], auth: AuthContext): Promise<void> {
    const namespacedIds = toolIds.filter(id => namespacedId.test(id))
    if (namespacedIds.length === 0) return
    const { tools, signInServers } = await this.#offerFor(workspaceId, namespacedIds, auth)
    const offered = new Set(tools.map(({ id }) => id))
    const unresolved = namespacedIds.filter(id => !offered.has(id))
    const hint = signInServers[0] && `Sign in to the MCP server first: ${mcpLoginCommand(signInServers[0])}`
    if (unresolved.length > 0)
      throw new WbError(
        'agent_tool_unresolved',
        `toolIds: the workspace does not offer ${unresolved.join(', ')}`,
        hint === undefined ? {} : { hint },
      )
  }

  /**
   * Returns the tools that an agent can currently use, in display order: the tools it lists that are available, or all
   * built-in tools if it lists none. Sends requests only to the servers of these tools.
   *
   * @param auth  caller of the turn, whose access applies to tool calls
   * @throws workspace_not_found
   * @throws the signal's reason  the caller has aborted
   */
  async forAgent(
    { workspaceId, toolIds }: Pick<Agent, 'workspaceId' | 'toolIds'>,
    auth: AuthContext,
    signal: AbortSignal,
  ): Promise<ToolOffer> {
    if (toolIds.length === 0) return { tools: this.deps.builtin, signInServers: [] }
    const { tools, signInServers } = await this.#offerFor(workspaceId, toolIds, auth)
    signal.throwIfAborted()
    return { tools: tools.filter(({ id }) => toolIds.includes(id)), signInServers }
  }

  async #offerFor(workspaceId: string, toolIds: readonly string[], auth: AuthContext): Promise<ToolOffer> {
    const serverIds = new Set(toolIds.flatMap(id => parseMcpToolId(id)?.server ?? []))
    const runtimeTools = this.#runtimeTools(await requireWorkspace(this.deps.rows, workspaceId))
    if (serverIds.size === 0) return { tools: runtimeTools, signInServers: [] }
    const { tools, signInServers } = await this.#serverTools(workspaceId, auth, serverIds)
    return { tools: [...runtimeTools, ...tools], signInServers }
  }

  async #serverTools(
    workspaceId: string,
    auth: AuthContext,
    serverIds?: ReadonlySet<string>,
  ): Promise<ToolOffer> {
    const { declared, remote } = this.deps
    const [declaredTools, remoteOffer] = await Promise.all([
      declared.list(workspaceId, serverIds),
      remote.list(workspaceId, auth, serverIds),
    ])
    return { tools: [...declaredTools, ...remoteOffer.tools], signInServers: remoteOffer.signInServers }
  }

  #runtimeTools(workspace: Workspace): Tool[] {
    return [...this.deps.builtin, ...this.deps.extraTools(workspace)]
  }
}
