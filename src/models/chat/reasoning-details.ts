import { isObject } from '../../base/is-object.ts'

/** Fields of a detail that are streamed in pieces. */
const textFields = ['text', 'summary', 'data']

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
      details[details.length - 1] = joined(last, piece)
    else details.push(piece)
  }
}

function joined(last: Record<string, unknown>, piece: Record<string, unknown>): Record<string, unknown> {
  const texts = textFields.flatMap(name => {
    const both = [last[name], piece[name]].filter(text => typeof text === 'string')
    return both.length > 0 ? [[name, both.join('')] as const] : []
  })
  const given = Object.entries(piece).filter(([, value]) => value !== null && value !== undefined)
  return { ...last, ...Object.fromEntries(given), ...Object.fromEntries(texts) }
}
