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
  const declared = local?.config.mcp.stdioServers ?? []
  if (url !== undefined || declared.length === 0) return []
  const missing = declared.filter(server => server.enabled && !isInstalled(server, dataDir, environment))
  if (missing.length > 0)
    return missing.map(({ id, command }) =>
      warning(`${id} of mcp.stdioServers: program ${command} not found`, 'wb config show'),
    )
  const names = declared.map(({ id, enabled }) => (enabled ? id : `${id} (disabled)`))
  return [ok(`${formatCounted(declared.length, 'server')} from the configuration: ${names.join(', ')}`)]
}

/**
 * Finds a command on disk. Paths are relative to the data directory, where servers start. Not checked on
 * Windows, where programs have several extensions.
 */
function isInstalled({ command, env }: StdioServer, dataDir: string, environment: Environment): boolean {
  if (hostFacts.platform === 'win32') return true
  const isPath = command.includes('/')
  return isPath ? isExecutable(resolve(dataDir, command)) : isOnPath(command, { ...environment, ...env })
}
