import type { z } from 'zod'
import { editDistance } from '../base/edit-distance.ts'

type KeySchema = z.core.$ZodType
/** Parts of a schema definition that can contain keys. */
type SchemaDefinition = {
  type: string
  shape?: Record<string, KeySchema>
  innerType?: KeySchema
  element?: KeySchema
  valueType?: KeySchema
  options?: readonly KeySchema[]
  in?: KeySchema
  out?: KeySchema
}

/** Returns the keys of a schema. In a key, `[]` represents any index of a list, and `*` any name in a map. */
export function knownKeys(schema: KeySchema): string[] {
  return [...new Set(walkKeys(schema, ''))]
}

function* walkKeys(schema: KeySchema, prefix: string): Generator<string> {
  const definition = schema._zod.def as SchemaDefinition
  for (const [name, entry] of Object.entries(definition.shape ?? {})) {
    const key = prefix === '' ? name : `${prefix}.${name}`
    yield key
    yield* walkKeys(entry, key)
  }
  if (definition.element) yield* walkKeys(definition.element, `${prefix}[]`)
  if (definition.valueType) yield* walkKeys(definition.valueType, `${prefix}.*`)
  for (const inner of [definition.innerType, definition.in, definition.out, ...(definition.options ?? [])])
    if (inner) yield* walkKeys(inner, prefix)
}

/**
 * Returns the known key that the user most likely meant: the one with the most similar name, preferably in the same
 * block. Returns undefined if no known name is similar: in a similar name, at most half of the characters differ.
 */
export function nearestKey(unknown: string, known: readonly string[]): string | undefined {
  const [block, name] = splitKey(unknown)
  const ranked = known.map(key => {
    const [knownBlock, knownName] = splitKey(key)
    const edits = editDistance(name, knownName)
    const isSimilar = edits <= Math.max(name.length, knownName.length) / 2
    return { key, isSimilar, cost: edits + (knownBlock === block ? 0 : Math.max(2, name.length / 3)) }
  })
  return ranked.filter(({ isSimilar }) => isSimilar).sort((a, b) => a.cost - b.cost)[0]?.key
}

function splitKey(key: string): [block: string, name: string] {
  const dot = key.lastIndexOf('.')
  return [
    key.slice(0, Math.max(dot, 0)).replace(/\[\d+\]/g, '[]'),
    key
      .slice(dot + 1)
      .toLowerCase()
      .slice(0, 64),
  ]
}
