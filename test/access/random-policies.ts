/** Draws from a sequence of random numbers. */
export interface Draw {
  /** Returns a whole number from 0 to `limit - 1`. */
  below(limit: number): number
  /** Returns true with a probability from 0 to 1. */
  chance(share: number): boolean
  /** Returns an element of a list, which is undefined if the list is empty. */
  pick<T>(list: readonly T[]): T
}

const conditions: readonly ((draw: Draw) => string)[] = [
  () => "'*' = ANY(visible_to)",
  () => 'current_principal_id() = ANY(visible_to)',
  () => '$principal.id = ANY(visible_to)',
  () => "visible_to @> ARRAY['ada', 'bob']",
  () => "$principal.admin = 'true'",
  () => 'team = $principal.team',
  () => 'team <> $principal.team',
  () => "$principal.team = 'red'",
  ({ pick }) => `team ${pick(['=', '<>', '>='])} '${pick(['red', 'blue'])}'`,
  () => "team IN ('red', 1)",
  ({ pick, below }) => `level ${pick(['=', '<>', '<', '<=', '>', '>='])} ${below(5)}`,
  ({ below }) => `${below(5)} < level`,
  () => "level >= '3'",
  ({ pick }) => `open ${pick(['=', '<>'])} ${pick(['TRUE', 'FALSE'])}`,
  ({ pick }) => `owner_id ${pick(['=', '<>'])} current_principal_id()`,
  () => 'owner_principal_id = $principal.id',
  ({ pick, below }) => `source_filename ${pick(['=', '<>'])} '${below(4)}.md'`,
]

/** Returns a random policy over the columns `team`, `level`, `open`, and those of all documents. */
export function drawPolicy(draw: Draw, depth = 3): string {
  const { chance, pick } = draw
  if (depth === 0 || chance(0.3)) return pick(conditions)(draw)
  if (chance(0.25)) return `NOT (${drawPolicy(draw, depth - 1)})`
  const parts = [drawPolicy(draw, depth - 1), drawPolicy(draw, depth - 1)]
  return parts.map(part => `(${part})`).join(chance(0.6) ? ' OR ' : ' AND ')
}
