import type { z } from 'zod'
import { limits } from '../contract/limits.ts'

/** The fields that a schema knows, level by level; null where it takes anything. */
type Known = { readonly fields: ReadonlyMap<string, Known> } | { readonly entry: Known } | null

/** Names of the fields of a value that a schema drops, as paths; `*` stands for any place in a list. */
export type FindIgnored = (value: unknown) => string[]

/** Prepare the search for one schema; a value costs one look-up a field. */
export function ignoredFields(schema: z.ZodType): FindIgnored {
  const known = knownOf(schema)
  return value => {
    const names = new Set<string>()
    collect(known, value, '', names)
    return [...names]
  }
}

/**
 * Value of `X-Workbase-Ignored`: at most ten names, percent-encoded, none longer than 64 bytes.
 *
 * @see docs/http.md#bodies
 */
export function ignoredHeader(names: readonly string[]): string {
  return names.slice(0, limits.ignoredFieldsNamed).map(encodeName).join(', ')
}

/** Cut between the escapes, so that what is left can be decoded. */
function encodeName(name: string): string {
  let encoded = ''
  for (const character of name) {
    const next = encoded + encodeURIComponent(character)
    if (next.length > limits.ignoredFieldBytes) break
    encoded = next
  }
  return encoded
}

function collect(known: Known, value: unknown, path: string, names: Set<string>): void {
  if (known === null || typeof value !== 'object' || value === null) return
  if ('entry' in known) {
    if (Array.isArray(value)) for (const entry of value) collect(known.entry, entry, `${path}*.`, names)
    return
  }
  for (const key in value) {
    if (names.size >= limits.ignoredFieldsNamed) return
    const inner = known.fields.get(key)
    if (inner === undefined) names.add(path + key)
    else collect(inner, (value as Record<string, unknown>)[key], `${path}${key}.`, names)
  }
}

function knownOf(schema: z.core.$ZodType): Known {
  const { def } = schema._zod as z.core.$ZodTypes['_zod']
  switch (def.type) {
    case 'object':
      return def.catchall
        ? null
        : { fields: new Map(Object.entries(def.shape).map(([name, field]) => [name, knownOf(field)])) }
    case 'array': {
      const entry = knownOf(def.element)
      return entry && { entry }
    }
    case 'optional':
    case 'nullable':
    case 'default':
    case 'prefault':
    case 'readonly':
      return knownOf(def.innerType)
    case 'pipe':
      return knownOf(def.in)
    default:
      return null
  }
}
