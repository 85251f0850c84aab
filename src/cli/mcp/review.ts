import { isObject } from '../../base/is-object.ts'
import type { McpServerTool, McpServerTools } from '../../contract/mcp-servers.ts'
import { plainLine, revealHidden } from '../terminal/terminal-text.ts'

/** Returns the tools that need approval before agents can use them. */
export function toolsAwaitingReview({ items }: McpServerTools): McpServerTool[] {
  return items.filter(({ state }) => state === 'new' || state === 'changed')
}

/**
 * Returns the name, description and arguments of a tool, which a model reads. Lines of the accepted description start
 * with `-`, and lines of a changed or new description with `+`.
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

/**
 * Describes the input of a tool, one argument per line. A schema that does not describe an object is shown as
 * JSON.
 */
function argumentLines(schema: McpServerTool['inputSchema']): string[] {
  const { type, properties = {}, required = [], ...otherFields } = schema
  if (type !== 'object' || !isObject(properties) || !Array.isArray(required))
    return [`arguments: ${revealedJson(schema)}`]
  const undescribedNames = required.filter(
    name => typeof name !== 'string' || !Object.hasOwn(properties, name),
  )
  const lines = Object.entries(properties).map(([name, property]) =>
    argumentLine(name, property, required.includes(name)),
  )
  const rest = { ...(undescribedNames.length > 0 && { required: undescribedNames }), ...otherFields }
  return [
    lines.length === 0 ? 'no arguments' : 'arguments',
    ...lines.map(line => `  ${line}`),
    ...Object.entries(rest).map(([name, value]) => `schema  ${oneLine(name)}: ${revealedJson(value)}`),
  ]
}

function argumentLine(name: string, property: unknown, isRequired: boolean): string {
  const {
    type = 'anything',
    description,
    ...otherFields
  } = isObject(property) ? property : { schema: property }
  const types = [type].flat()
  const hasNamedTypes = types.every(name => typeof name === 'string')
  const hasDescription = typeof description === 'string'
  const rest = {
    ...(!hasNamedTypes && { type }),
    ...(!hasDescription && description !== undefined && { description }),
    ...otherFields,
  }
  return [
    `${oneLine(name)}: ${hasNamedTypes ? oneLine(types.join(' or ')) : 'anything'}${isRequired ? ', required' : ''}`,
    ...(hasDescription ? [oneLine(description)] : []),
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
