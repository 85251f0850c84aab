import type { z } from 'zod'
import { editDistance } from '../base/edit-distance.ts'

type Schema = z.core.$ZodType
/** The definitions whose inside holds keys. */
type Definition = {
  type: string
  shape?: Record<string, Schema>
  innerType?: Schema
  element?: Schema
  valueType?: Schema
  options?: readonly Schema[]
  in?: Schema
  out?: Schema
}

/** A key that a schema knows: `[]` stands for any place in a list, `*` for any name in a map. */
export function knownKeys(schema: Schema): string[] {
  return [...new Set(walk(schema, ''))]
}

function* walk(schema: Schema, prefix: string): Generator<string> {
  const definition = schema._zod.def as Definition
  for (const [name, entry] of Object.entries(definition.shape ?? {})) {
    const key = prefix === '' ? name : `${prefix}.${name}`
    yield key
    yield* walk(entry, key)
  }
  if (definition.element) yield* walk(definition.element, `${prefix}[]`)
  if (definition.valueType) yield* walk(definition.valueType, `${prefix}.*`)
  for (const inner of [definition.innerType, definition.in, definition.out, ...(definition.options ?? [])])
    if (inner) yield* walk(inner, prefix)
}

/**
 * The known key that an unknown one most likely means: near in its own block, else by its last name anywhere. Undefined
 * where more than half of the letters differ from all of them.
 */
export function nearestKey(unknown: string, known: readonly string[]): string | undefined {
  const [block, name] = split(unknown)
  const ranked = known.map(key => {
    const [itsBlock, itsName] = split(key)
    const edits = editDistance(name, itsName)
    const isNear = edits <= Math.max(name.length, itsName.length) / 2
    return { key, isNear, cost: edits + (itsBlock === block ? 0 : Math.max(2, name.length / 3)) }
  })
  return ranked.filter(({ isNear }) => isNear).sort((a, b) => a.cost - b.cost)[0]?.key
}

function split(key: string): [block: string, name: string] {
  const dot = key.lastIndexOf('.')
  return [
    key.slice(0, Math.max(dot, 0)).replace(/\[\d+\]/g, '[]'),
    key
      .slice(dot + 1)
      .toLowerCase()
      .slice(0, 64),
  ]
}
