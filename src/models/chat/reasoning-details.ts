import { isObject } from '../../base/is-object.ts'

/** Fields of a detail that come in pieces. */
const textFields: ReadonlySet<string> = new Set(['text', 'summary', 'data'])

/**
 * Joins the pieces of reasoning details, which OpenRouter requires back whole and in order. Pieces of one detail follow
 * each other and have its type and index.
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

/** Changes the detail in place: a copy for each piece would cost more and more. */
function join(last: Record<string, unknown>, piece: Record<string, unknown>): void {
  for (const [name, value] of Object.entries(piece)) {
    const before = last[name]
    if (value === null || value === undefined) continue
    if (typeof before !== 'string' || !textFields.has(name)) last[name] = value
    else if (typeof value === 'string') last[name] = before + value
  }
}
