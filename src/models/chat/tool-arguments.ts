import { isObject } from '../../base/is-object.ts'
import { parseJson } from '../../base/parse-json.ts'

/** JSON Schema of the arguments of a tool. */
export type ToolSchema = Readonly<Record<string, unknown>>

/**
 * Normalizes the arguments of a call. Decodes JSON that was encoded twice, returns `{}` for empty text, and
 * removes null and empty values of optional parameters that do not accept them. Other text is unchanged.
 *
 * @param schema  JSON Schema of the arguments; undefined for an unknown tool
 */
export function normalizeToolArguments(written: string, schema: ToolSchema | undefined): string {
  if (['', 'null', '""'].includes(written.trim())) return '{}'
  const value = parseJson(written)
  const inner = typeof value === 'string' ? parseJson(value) : value
  if (!isObject(inner)) return typeof value === 'string' && value.trim() === '' ? '{}' : written
  const given = Object.entries(inner)
  const kept = schema ? given.filter(([name, one]) => !isOmitted(name, one, schema)) : given
  if (kept.length === given.length) return typeof value === 'string' ? value : written
  return JSON.stringify(Object.fromEntries(kept))
}

function isOmitted(name: string, value: unknown, { properties, required }: ToolSchema): boolean {
  if (Array.isArray(required) && required.includes(name)) return false
  const schema = isObject(properties) && Object.hasOwn(properties, name) ? properties[name] : undefined
  if (!isObject(schema)) return false
  if (value === null) return !takesNull(schema)
  return value === '' && !takesEmpty(schema)
}

function takesNull(schema: ToolSchema): boolean {
  const { type, nullable, enum: values } = schema
  if (nullable === true || [type].flat().includes('null')) return true
  if (Array.isArray(values) && values.includes(null)) return true
  return alternatives(schema).some(takesNull) || isUnknown(schema)
}

function takesEmpty(schema: ToolSchema): boolean {
  const { type, enum: values, minLength, format, pattern } = schema
  if (alternatives(schema).some(takesEmpty) || isUnknown(schema)) return true
  if (Array.isArray(values)) return values.includes('')
  return [type].flat().includes('string') && !minLength && format === undefined && pattern === undefined
}

function alternatives({ anyOf, oneOf }: ToolSchema): ToolSchema[] {
  return [anyOf, oneOf].flatMap(list => (Array.isArray(list) ? list.filter(isObject) : []))
}

/** Returns true for a schema without a type, such as a reference. */
function isUnknown(schema: ToolSchema): boolean {
  const { type, enum: values } = schema
  return type === undefined && values === undefined && alternatives(schema).length === 0
}
