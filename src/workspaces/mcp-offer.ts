import { fingerprintJson } from '../base/fingerprint-json.ts'
import { limits } from '../contract/limits.ts'
import { mcpToolId } from '../contract/tool-ids.ts'
import type { McpTool } from '../models/mcp/client.ts'
import type { ReviewedTool } from '../storage/tables.ts'

/** Tools of one server; more are left out. */
const toolsMax = 500
/** Of one server; what does not fit is left out. */
const charsMax = 1_000_000
const descriptionCharsMax = 1_024
const schemaCharsMax = 16_384
const anyObject = { type: 'object', additionalProperties: true }
const uuidChars = 36
/** Longer ones leave no room for the server in the id of a tool. */
const nameCharsMax = limits.toolIdChars - mcpToolId('', '').length - uuidChars

/** A tool as a model would be told of it. */
export interface OfferedTool extends McpTool {
  /** Of all that a model would be told. */
  readonly hash: string
}

/** What a server said, as much of it as a model is given; no name stands twice. */
export interface McpOffer {
  readonly tools: readonly OfferedTool[]
  /** Length of it all. */
  readonly chars: number
}

/** What is kept of a server's answer: copies, as a part of a text keeps all of it in memory. */
export function createOffer(tools: readonly McpTool[]): McpOffer {
  const kept = new Map<string, OfferedTool>()
  let chars = 0
  for (const { name, description, inputSchema } of tools.slice(0, toolsMax)) {
    if (kept.has(name) || name.length > nameCharsMax) continue
    const text = JSON.stringify({
      name,
      description: description.slice(0, descriptionCharsMax),
      inputSchema: boundSchema(inputSchema),
    })
    if (chars + text.length > charsMax) break
    chars += text.length
    const tool = JSON.parse(text) as McpTool
    kept.set(tool.name, { ...tool, hash: hashTool(tool) })
  }
  return { tools: [...kept.values()], chars }
}

/** Changes with anything that a model is told of a tool. */
export function hashTool({ name, description, inputSchema }: McpTool): string {
  return fingerprintJson({ name, description, inputSchema })
}

/** What accepting a whole offer comes to. */
export function reviewAll({ tools }: McpOffer): Record<string, ReviewedTool> {
  return Object.fromEntries(tools.map(({ name, hash, description }) => [name, { hash, description }]))
}

/** What was accepted of a tool; undefined for one that nobody has seen. */
export function reviewedTool(
  reviewed: Readonly<Record<string, ReviewedTool>>,
  name: string,
): ReviewedTool | undefined {
  return Object.hasOwn(reviewed, name) ? reviewed[name] : undefined
}

/** A schema that is too long, or not of an object, would be refused by model providers. */
function boundSchema(schema: Record<string, unknown>): Record<string, unknown> {
  const fits = schema.type === 'object' && JSON.stringify(schema).length <= schemaCharsMax
  return fits ? schema : anyObject
}
