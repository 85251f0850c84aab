import { ofServer } from '../../contract/tool-ids.ts'
import type { ToolSpec } from '../../models/chat/completion.ts'
import type { Tool } from './tool.ts'

/** Returns a tool as a model sees it. The alias of a tool of a server begins with its label: `issues_search`. */
export function specOf({ id, description, inputSchema, serverLabel }: Tool): ToolSpec {
  const spec = { name: id, description, parameters: inputSchema }
  const label = serverLabel?.replace(/[^a-zA-Z0-9]+/g, '_').replace(/^_|_$/g, '')
  return label ? { ...spec, alias: `${label}_${ofServer(id)?.tool ?? id}` } : spec
}
