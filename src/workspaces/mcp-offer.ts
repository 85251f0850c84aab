import { fingerprintJson } from '../base/fingerprint-json.ts'
import { limits } from '../contract/limits.ts'
import { mcpToolId } from '../contract/tool-ids.ts'
import type { McpTool } from '../models/mcp/client.ts'
import type { AcceptedTool } from '../storage/tables.ts'

/** Maximum number of tools of one server. Additional tools are ignored. */
const toolsMax = 500
/** Maximum length of the tools of one server as JSON, in UTF-16 code units. Additional tools are ignored. */
const charsMax = 1_000_000
const descriptionCharsMax = 1_024
const schemaCharsMax = 16_384
const anyObject = { type: 'object', additionalProperties: true }
const uuidChars = 36
/** Maximum length of a tool name. A longer name leaves no space for the server ID in the tool ID. */
const nameCharsMax = limits.toolIdChars - mcpToolId('', '').length - uuidChars

/** A tool, with the description that models receive. */
export interface OfferedTool extends McpTool {
  /** Hash of the name, the description and the schema, see {@link hashTool}. */
  readonly hash: string
}

/** Tools of a server within the limits, with unique names. */
export interface McpOffer {
  readonly tools: readonly OfferedTool[]
  /** Length of all tools as JSON, in UTF-16 code units. */
  readonly chars: number
}

/**
 * Returns the tools of a server within the limits. Copies shortened strings, because a slice would keep the whole
 * string in memory.
 */
export function createOffer(tools: readonly McpTool[]): McpOffer {
  const offered = new Map<string, OfferedTool>()
  let chars = 0
  for (const { name, description, inputSchema } of tools.slice(0, toolsMax)) {
    if (offered.has(name) || name.length > nameCharsMax) continue
    const text = JSON.stringify({
      name,
      description: description.slice(0, descriptionCharsMax),
      inputSchema: boundSchema(inputSchema),
    })
    if (chars + text.length > charsMax) break
    chars += text.length
    const tool = JSON.parse(text) as McpTool
    offered.set(tool.name, { ...tool, hash: hashTool(tool) })
  }
  return { tools: [...offered.values()], chars }
}

/** Returns a hash of the name, the description and the schema of a tool. */
export function hashTool({ name, description, inputSchema }: McpTool): string {
  return fingerprintJson({ name, description, inputSchema })
}

/** Returns all tools of an offer as accepted tools. */
export function acceptAll({ tools }: McpOffer): Record<string, AcceptedTool> {
  return Object.fromEntries(tools.map(({ name, hash, description }) => [name, { hash, description }]))
}

/** Returns the accepted version of a tool; undefined if it was never accepted. */
export function findAcceptedTool(
  accepted: Readonly<Record<string, AcceptedTool>>,
  name: string,
): AcceptedTool | undefined {
  return Object.hasOwn(accepted, name) ? accepted[name] : undefined
}

/**
 * Returns the schema of a tool, or a schema for any object if model providers would reject it: if it is too long, or does
 * not describe an object.
 */
function boundSchema(schema: Record<string, unknown>): Record<string, unknown> {
  const fits = schema.type === 'object' && JSON.stringify(schema).length <= schemaCharsMax
  return fits ? schema : anyObject
}
