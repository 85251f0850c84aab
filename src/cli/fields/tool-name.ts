import { parseMcpToolId } from '../../contract/tool-ids.ts'
import { isId } from '../id.ts'

/** Names by ID. */
export type NamesById = Readonly<Record<string, string>>

/** Returns the name for an ID; undefined if the ID is unknown. Ignores inherited properties. */
export function lookUpName(names: NamesById, id: string): string | undefined {
  return Object.hasOwn(names, id) ? names[id] : undefined
}

/**
 * Returns the name of a tool on the command line: `SERVER/TOOL` for a tool of an MCP server. Returns the ID of other
 * tools, and of tools whose server was deleted. The name of a server from the configuration is its ID.
 *
 * @param servers  names of MCP servers
 */
export function formatToolName(id: string, servers: NamesById): string {
  const parts = parseMcpToolId(id)
  if (!parts) return id
  const { server, tool } = parts
  const name = lookUpName(servers, server) ?? (isId(server) ? undefined : server)
  return name === undefined ? id : `${name}/${tool}`
}
