import type { TextPlace } from '../../base/text-layout.ts'
import type { ChunkSpan } from './chunker.ts'

/**
 * Returns the place of the file in which each span starts; undefined before the first place. White space at the start of a
 * span is skipped.
 *
 * @param spans   with ascending starts
 * @param places  with ascending starts
 */
export function placesAt(
  text: string,
  spans: readonly ChunkSpan[],
  places: readonly TextPlace[],
): (TextPlace | undefined)[] {
  let next = 0
  return spans.map(({ start, end }) => {
    const offset = start + Math.max(0, text.slice(start, end).search(/\S/))
    while (next < places.length && places[next]!.start <= offset) next++
    return places[next - 1]
  })
}
