import { parseMcpToolId } from '../../contract/tool-ids.ts'
import { isId } from '../id.ts'

/** Names by ID. */
export type Names = Readonly<Record<string, string>>

/** Returns the name of an ID, or undefined. Ignores inherited properties. */
export function lookUpName(names: Names, id: string): string | undefined {
  return Object.hasOwn(names, id) ? names[id] : undefined
}

/**
 * Returns the name of a tool on the command line: `SERVER/TOOL` for a tool of an MCP server, else its ID. If
 * the server was deleted, returns the ID. A server declared in the configuration has its ID as its name.
 *
 * @param servers  names of MCP servers
 */
export function formatToolName(id: string, servers: Names): string {
  const parts = parseMcpToolId(id)
  if (!parts) return id
  const { server, tool } = parts
  const name = lookUpName(servers, server) ?? (isId(server) ? undefined : server)
  return name === undefined ? id : `${name}/${tool}`
}
