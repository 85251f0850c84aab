import { isObject } from '../../base/is-object.ts'
import { parseJson } from '../../base/parse-json.ts'

/** JSON Schema of a tool's arguments. */
export type ToolSchema = Readonly<Record<string, unknown>>

/**
 * Normalizes the arguments of a tool call. Decodes JSON that was encoded twice, returns `{}` for an empty string, and
 * removes null and empty values of optional parameters that do not accept them. Returns any other string unchanged.
 *
 * @param schema  JSON Schema of the arguments; undefined for an unknown tool
 */
export function normalizeToolArguments(argumentsText: string, schema: ToolSchema | undefined): string {
  if (['', 'null', '""'].includes(argumentsText.trim())) return '{}'
  const value = parseJson(argumentsText)
  const decoded = typeof value === 'string' ? parseJson(value) : value
  if (!isObject(decoded)) return typeof value === 'string' && value.trim() === '' ? '{}' : argumentsText
  const entries = Object.entries(decoded)
  const keptEntries = schema ? entries.filter(([name, entry]) => !isOmitted(name, entry, schema)) : entries
  if (keptEntries.length === entries.length) return typeof value === 'string' ? value : argumentsText
  return JSON.stringify(Object.fromEntries(keptEntries))
}

function isOmitted(name: string, value: unknown, { properties, required }: ToolSchema): boolean {
  if (Array.isArray(required) && required.includes(name)) return false
  const schema = isObject(properties) && Object.hasOwn(properties, name) ? properties[name] : undefined
  if (!isObject(schema)) return false
  if (value === null) return !acceptsNull(schema)
  return value === '' && !acceptsEmpty(schema)
}

function acceptsNull(schema: ToolSchema): boolean {
  const { type, nullable, enum: values } = schema
  if (nullable === true || [type].flat().includes('null')) return true
  if (Array.isArray(values) && values.includes(null)) return true
  return alternatives(schema).some(acceptsNull) || hasNoType(schema)
}

function acceptsEmpty(schema: ToolSchema): boolean {
  const { type, enum: values, minLength, format, pattern } = schema
  if (alternatives(schema).some(acceptsEmpty) || hasNoType(schema)) return true
  if (Array.isArray(values)) return values.includes('')
  return [type].flat().includes('string') && !minLength && format === undefined && pattern === undefined
}

function alternatives({ anyOf, oneOf }: ToolSchema): ToolSchema[] {
  return [anyOf, oneOf].flatMap(list => (Array.isArray(list) ? list.filter(isObject) : []))
}

/** Returns true for a schema that does not state a type, such as a reference. */
function hasNoType(schema: ToolSchema): boolean {
  const { type, enum: values } = schema
  return type === undefined && values === undefined && alternatives(schema).length === 0
}
