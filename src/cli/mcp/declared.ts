import type { McpServer } from '../../contract/mcp-servers.ts'
import type { Session } from '../connection/session.ts'
import { checkConfig } from '../doctor/config-problems.ts'

/** A server that the configuration declares as a command, as far as it is like one that is registered. */
export type Declared = Pick<McpServer, 'mcpServerId' | 'label' | 'url' | 'allowedTools' | 'enabled'>

/**
 * The servers that the configuration of this machine gives a workspace; none of a runtime elsewhere, as no route tells
 * of them.
 */
export async function declaredFor(workspaceId: string, session: Session): Promise<Declared[]> {
  if ((await session.elsewhere())?.kind === 'named') return []
  const { local } = await checkConfig(session.profile, session.io)
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
