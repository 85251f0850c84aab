import { ofServer } from '../../contract/tool-ids.ts'
import { isId } from '../id.ts'

/** Names by id. */
export type Names = Readonly<Record<string, string>>

/** The name of an id; undefined of one that has none, also where every object has something by that name. */
export function nameIn(names: Names, id: string): string | undefined {
  return Object.hasOwn(names, id) ? names[id] : undefined
}

/**
 * A tool as it is named on the command line: `SERVER/TOOL` for one of an MCP server, else its id. One whose server is
 * gone keeps its id; the id of a server that the configuration declares is its name.
 *
 * @param servers  names of MCP servers
 */
export function toolWord(id: string, servers: Names): string {
  const parts = ofServer(id)
  if (!parts) return id
  const { server, tool } = parts
  const name = nameIn(servers, server) ?? (isId(server) ? undefined : server)
  return name === undefined ? id : `${name}/${tool}`
}
