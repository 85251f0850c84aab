import { type Client, everything } from '../../client/client.ts'
import { type McpServer, mcpServers } from '../../contract/mcp-servers.ts'
import { isId } from '../id.ts'
import { type Kind, pick, type Resolving, resolveWorkspace } from './resolve.ts'

const mcpServerKind: Kind = {
  one: 'MCP server',
  code: 'mcp_server_not_found',
  list: 'wb mcp servers list',
  create: ['wb mcp servers add NAME URL'],
}

/**
 * Finds an MCP server by ID or label. Without one, returns the only server of the workspace.
 *
 * @throws WbError mcp_server_not_found  when no server matches; suggests a similar label
 * @throws UsageError                    when several servers match
 */
export async function findMcpServer(resolving: Resolving, wanted?: string): Promise<McpServer> {
  const { client, choose } = resolving
  const { workspaceId } = await resolveWorkspace(resolving)
  if (wanted && isId(wanted))
    return client.call(mcpServers.show, { params: { workspaceId, mcpServerId: wanted } })
  const all = await everyServer(client, workspaceId)
  const named = all.map(row => ({ row, id: row.mcpServerId, name: row.label }))
  return pick(named, wanted, { ...mcpServerKind, naming: resolving.withBase }, choose)
}

/** Returns the registered MCP servers of a workspace. */
export async function everyServer(client: Client, workspaceId: string): Promise<McpServer[]> {
  const request = { params: { workspaceId } }
  return everything(client.items(mcpServers.list, request))
}
