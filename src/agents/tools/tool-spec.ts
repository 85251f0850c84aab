import { parseMcpToolId } from '../../contract/tool-ids.ts'
import type { ToolSpec } from '../../models/chat/completion.ts'
import type { Tool } from './tool.ts'

/**
 * Returns the description of a tool for a model. For a tool of an MCP server, the alias starts with the server's label,
 * for example `issues_search`.
 */
export function toToolSpec({ id, description, inputSchema, serverLabel }: Tool): ToolSpec {
  const spec = { name: id, description, parameters: inputSchema }
  const label = serverLabel?.replace(/[^a-zA-Z0-9]+/g, '_').replace(/^_|_$/g, '')
  return label ? { ...spec, alias: `${label}_${parseMcpToolId(id)?.tool ?? id}` } : spec
}
