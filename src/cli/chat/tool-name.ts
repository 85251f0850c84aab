import { ofServer } from '../../contract/tool-ids.ts'
import { lookUpName, type Names } from '../shown/tool-name.ts'
import { plainLine, revealed } from '../terminal/terminal-text.ts'

/**
 * A tool as people know it: a tool of an MCP server by its own name and the server's. One whose server is not known
 * keeps its id.
 *
 * @param servers  names of MCP servers
 */
export function toolName(id: string, servers: Names): string {
  const parts = ofServer(id)
  const server = parts && lookUpName(servers, parts.server)
  return revealed(server === undefined ? id : `${parts!.tool} of ${plainLine(server)}`)
}

/** Whether the tool is one of an MCP server. */
export function isOfServer(id: string): boolean {
  return id.startsWith('mcp:')
}
