import { resolve } from 'node:path'
import { hostFacts } from '../../base/host-facts.ts'
import { type Environment, isExecutable, isOnPath } from '../environment.ts'
import type { LocalConfig } from '../local.ts'
import type { Profile } from '../settings/profile.ts'
import { formatCounted } from '../terminal/output.ts'
import { type Finding, ok, warning } from './check.ts'
import type { ValidatedConfig } from './validate-config.ts'

type StdioServer = LocalConfig['config']['mcp']['stdioServers'][number]

/** Checks that the commands of the configured stdio tool servers exist. Does not start them. */
export function checkToolServers(
  { url, dataDir }: Pick<Profile, 'url' | 'dataDir'>,
  environment: Environment,
  { local }: ValidatedConfig,
): Finding[] {
  const servers = local?.config.mcp.stdioServers ?? []
  if (url !== undefined || servers.length === 0) return []
  const missing = servers.filter(server => server.enabled && !isInstalled(server, dataDir, environment))
  if (missing.length > 0)
    return missing.map(({ id, command }) =>
      warning(`MCP server ${id}: program ${command} not found`, 'wb config show'),
    )
  const names = servers.map(({ id, enabled }) => (enabled ? id : `${id} (disabled)`))
  return [ok(`${formatCounted(servers.length, 'server')} from the configuration: ${names.join(', ')}`)]
}

/**
 * Returns true if the command exists. Relative paths start from the data directory, which is the working directory of
 * the servers. Always returns true on Windows, where programs have various extensions.
 */
function isInstalled({ command, env }: StdioServer, dataDir: string, environment: Environment): boolean {
  if (hostFacts.platform === 'win32') return true
  const isPath = command.includes('/')
  return isPath ? isExecutable(resolve(dataDir, command)) : isOnPath(command, { ...environment, ...env })
}
