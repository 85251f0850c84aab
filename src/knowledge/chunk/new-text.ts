import type { ChunkSpan } from './chunker.ts'

/**
 * Returns the offset of the first character of each span that the spans before it do not contain. White space is skipped. If there
 * is no such character, returns the offset of the last character of the span. The offsets are in ascending order.
 *
 * @param spans  with ascending starts and ends
 */
export function newTextOffsets(text: string, spans: readonly ChunkSpan[]): number[] {
  return spans.map(({ start, end }, at) => {
    const offset = Math.max(start, spans[at - 1]?.end ?? 0)
    const skipped = text.slice(offset, end).search(/\S/)
    return skipped < 0 ? Math.max(start, end - 1) : offset + skipped
  })
}
