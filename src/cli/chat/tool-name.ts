import { parseMcpToolId } from '../../contract/tool-ids.ts'
import { lookUpName, type NamesById } from '../fields/tool-name.ts'
import { plainLine, revealHidden } from '../terminal/terminal-text.ts'

/**
 * Returns the name of a tool for users: `search from issues` for a tool of the MCP server `issues`. Returns the ID of
 * other tools, and of tools whose server is unknown.
 *
 * @param servers  names of MCP servers
 */
export function toolDisplayName(id: string, servers: NamesById): string {
  const parts = parseMcpToolId(id)
  const server = parts && lookUpName(servers, parts.server)
  return revealHidden(server === undefined ? id : `${parts!.tool} from ${plainLine(server)}`)
}

/** Returns true for tools of MCP servers. */
export function isMcpTool(id: string): boolean {
  return id.startsWith('mcp:')
}
