import { isObject } from '../../base/is-object.ts'

/** Fields whose pieces are concatenated. */
const textFields: ReadonlySet<string> = new Set(['text', 'summary', 'data'])

/**
 * Joins the pieces of reasoning details, which must be sent back to OpenRouter complete and in order.
 * Consecutive pieces with the same type and index belong to one detail.
 *
 * @see https://openrouter.ai/docs/use-cases/reasoning-tokens#preserving-reasoning-blocks
 */
export function addDetails(details: unknown[], pieces: readonly unknown[]): void {
  for (const piece of pieces) {
    const last = details.at(-1)
    if (isObject(last) && isObject(piece) && last.type === piece.type && last.index === piece.index)
      join(last, piece)
    else details.push(piece)
  }
}

/** Adds a piece to a detail in place. Copying the detail for each piece would take quadratic time. */
function join(last: Record<string, unknown>, piece: Record<string, unknown>): void {
  for (const [name, value] of Object.entries(piece)) {
    const before = last[name]
    if (value === null || value === undefined) continue
    if (typeof before !== 'string' || !textFields.has(name)) last[name] = value
    else if (typeof value === 'string') last[name] = before + value
  }
}
