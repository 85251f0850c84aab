import { isObject } from '../../base/is-object.ts'

/** Fields whose values are concatenated. For any other field, the last value is used. */
const textFields: ReadonlySet<string> = new Set(['text', 'summary', 'data'])

/**
 * Adds pieces to a list of reasoning details. Later requests to OpenRouter must contain all details in order.
 * Consecutive pieces with the same type and index belong to one detail.
 *
 * @see https://openrouter.ai/docs/use-cases/reasoning-tokens#preserving-reasoning-blocks
 */
export function addDetails(details: unknown[], pieces: readonly unknown[]): void {
  for (const piece of pieces) {
    const last = details.at(-1)
    if (isObject(last) && isObject(piece) && last.type === piece.type && last.index === piece.index)
      appendPiece(last, piece)
    else details.push(piece)
  }
}

/** Adds a piece to a detail in place. Copying the detail for each piece would take quadratic time. */
function appendPiece(detail: Record<string, unknown>, piece: Record<string, unknown>): void {
  for (const [name, value] of Object.entries(piece)) {
    const previous = detail[name]
    if (value === null || value === undefined) continue
    if (typeof previous !== 'string' || !textFields.has(name)) detail[name] = value
    else if (typeof value === 'string') detail[name] = previous + value
  }
}
