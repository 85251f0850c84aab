import type { McpServer } from '../../contract/mcp-servers.ts'
import type { Session } from '../connection/session.ts'
import { validateConfig } from '../doctor/validate-config.ts'

/** A server that is declared in the configuration, with the fields that it shares with registered servers. */
export type DeclaredServer = Pick<McpServer, 'mcpServerId' | 'label' | 'url' | 'allowedTools' | 'enabled'>

/**
 * Returns the servers that the local configuration declares for a workspace. Returns an empty list for a remote
 * runtime, because the API does not list its declared servers.
 */
export async function listDeclaredServers(workspaceId: string, session: Session): Promise<DeclaredServer[]> {
  if ((await session.remoteRuntime())?.kind === 'url') return []
  const { local } = await validateConfig(session.profile, session.io)
  const servers = local?.config.mcp.stdioServers ?? []
  return servers
    .filter(({ workspaces }) => workspaces?.includes(workspaceId) ?? true)
    .map(({ id, allowedTools, enabled }) => ({
      mcpServerId: id,
      label: id,
      url: 'from the configuration',
      allowedTools,
      enabled,
    }))
}
