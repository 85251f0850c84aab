import { isObject } from '../../base/is-object.ts'
import type { McpServerTool, McpServerTools } from '../../contract/mcp-servers.ts'
import { plainLine, revealHidden } from '../terminal/terminal-text.ts'

/** Returns the tools that need approval before agents can use them. */
export function toolsAwaitingReview({ items }: McpServerTools): McpServerTool[] {
  return items.filter(({ state }) => state === 'new' || state === 'changed')
}

/**
 * Compares the model-facing text of a tool with the accepted version. Removed lines start with `-`, added
 * lines with `+`.
 */
export function reviewLines({ name, state, description, acceptedDescription, inputSchema }: McpServerTool) {
  const isSame = description === acceptedDescription
  const before = acceptedDescription === null || isSame ? [] : markLines('-', acceptedDescription)
  return [
    `  ${oneLine(name)}  ${state}`,
    ...before,
    ...markLines(isSame ? ' ' : '+', description),
    ...argumentLines(inputSchema).map(line => `    ${line}`),
  ]
}

/** Describes the input of a tool, one argument per line. Schemas of another form are shown as JSON. */
function argumentLines(schema: McpServerTool['inputSchema']): string[] {
  const { type, properties = {}, required = [], ...more } = schema
  if (type !== 'object' || !isObject(properties) || !Array.isArray(required))
    return [`takes ${revealedJson(schema)}`]
  const others = required.filter(name => typeof name !== 'string' || !Object.hasOwn(properties, name))
  const lines = Object.entries(properties).map(([name, property]) =>
    argumentLine(name, property, required.includes(name)),
  )
  const rest = { ...(others.length > 0 && { required: others }), ...more }
  return [
    lines.length === 0 ? 'takes nothing' : 'takes',
    ...lines.map(line => `  ${line}`),
    ...Object.entries(rest).map(([name, value]) => `and  ${oneLine(name)}: ${revealedJson(value)}`),
  ]
}

function argumentLine(name: string, property: unknown, isRequired: boolean): string {
  const { type = 'anything', description, ...more } = isObject(property) ? property : { is: property }
  const types = [type].flat()
  const isWords = types.every(one => typeof one === 'string')
  const isText = typeof description === 'string'
  const rest = {
    ...(!isWords && { type }),
    ...(!isText && description !== undefined && { description }),
    ...more,
  }
  return [
    `${oneLine(name)}: ${isWords ? oneLine(types.join(' or ')) : 'anything'}${isRequired ? ', required' : ''}`,
    ...(isText ? [oneLine(description)] : []),
    ...(Object.keys(rest).length > 0 ? [revealedJson(rest)] : []),
  ].join('  ')
}

function oneLine(text: string): string {
  return plainLine(revealHidden(text))
}

function revealedJson(value: unknown): string {
  return revealHidden(JSON.stringify(value))
}

function markLines(sign: string, text: string): string[] {
  return revealHidden(text)
    .split('\n')
    .map(line => `    ${sign} ${line}`.trimEnd())
}
