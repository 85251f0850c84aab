import { type Client, collect } from '../../client/client.ts'
import { type McpServer, mcpServers } from '../../contract/mcp-servers.ts'
import { isId } from '../id.ts'
import { pickResource, type ResolveContext, type ResourceKind, resolveWorkspace } from './resolve.ts'

const mcpServerKind: ResourceKind = {
  noun: 'MCP server',
  notFoundCode: 'mcp_server_not_found',
  listCommand: 'wb mcp servers list',
  createCommands: ['wb mcp servers add NAME URL'],
}

/**
 * Finds an MCP server by ID or label. Without `labelOrId`, returns the only server of the workspace, or lets the user
 * choose.
 *
 * @throws WbError mcp_server_not_found  no server matches; suggests a similar label
 * @throws UsageError                    several servers match
 */
export async function findMcpServer(context: ResolveContext, labelOrId?: string): Promise<McpServer> {
  const { client, promptForChoice } = context
  const { workspaceId } = await resolveWorkspace(context)
  if (labelOrId && isId(labelOrId))
    return client.call(mcpServers.show, { params: { workspaceId, mcpServerId: labelOrId } })
  const all = await listMcpServers(client, workspaceId)
  const candidates = all.map(row => ({ row, id: row.mcpServerId, name: row.label }))
  return pickResource(
    candidates,
    labelOrId,
    { ...mcpServerKind, selectCommand: context.commandWithName },
    promptForChoice,
  )
}

/** Returns the registered MCP servers of a workspace. */
export async function listMcpServers(client: Client, workspaceId: string): Promise<McpServer[]> {
  const request = { params: { workspaceId } }
  return collect(client.items(mcpServers.list, request))
}
