import type { z } from 'zod'
import { limits } from '../contract/limits.ts'

/** Fields that a schema accepts, nested like the value; null if it accepts any value. */
type KnownFields =
  | { readonly fields: ReadonlyMap<string, KnownFields> }
  | { readonly entry: KnownFields }
  | null

/** Returns the paths of the fields in a value that a schema ignores, with `*` instead of array indexes. */
export type FindIgnoredFields = (value: unknown) => string[]

/** Returns a function that finds the ignored fields of values. It costs one lookup per field. */
export function createIgnoredFieldFinder(schema: z.ZodType): FindIgnoredFields {
  const known = knownFieldsOf(schema)
  return value => {
    const names = new Set<string>()
    collectIgnored(known, value, '', names)
    return [...names]
  }
}

/**
 * Returns the value of the header `X-Workbase-Ignored`: at most ten percent-encoded names of at most 64 bytes.
 *
 * @see docs/http.md#bodies
 */
export function formatIgnoredHeader(names: readonly string[]): string {
  return names.slice(0, limits.ignoredFieldsReported).map(encodeName).join(', ')
}

/** Percent-encodes and truncates a name. It never splits an escape, so the result can be decoded. */
function encodeName(name: string): string {
  let encoded = ''
  for (const character of name) {
    const next = encoded + encodeURIComponent(character)
    if (next.length > limits.ignoredFieldBytes) break
    encoded = next
  }
  return encoded
}

function collectIgnored(known: KnownFields, value: unknown, path: string, names: Set<string>): void {
  if (known === null || typeof value !== 'object' || value === null) return
  if ('entry' in known) {
    if (Array.isArray(value))
      for (const entry of value) collectIgnored(known.entry, entry, `${path}*.`, names)
    return
  }
  for (const key in value) {
    if (names.size >= limits.ignoredFieldsReported) return
    const inner = known.fields.get(key)
    if (inner === undefined) names.add(path + key)
    else collectIgnored(inner, (value as Record<string, unknown>)[key], `${path}${key}.`, names)
  }
}

function knownFieldsOf(schema: z.core.$ZodType): KnownFields {
  const { def } = schema._zod as z.core.$ZodTypes['_zod']
  switch (def.type) {
    case 'object':
      return def.catchall
        ? null
        : { fields: new Map(Object.entries(def.shape).map(([name, field]) => [name, knownFieldsOf(field)])) }
    case 'array': {
      const entry = knownFieldsOf(def.element)
      return entry && { entry }
    }
    case 'optional':
    case 'nullable':
    case 'default':
    case 'prefault':
    case 'readonly':
      return knownFieldsOf(def.innerType)
    case 'pipe':
      return knownFieldsOf(def.in)
    default:
      return null
  }
}
