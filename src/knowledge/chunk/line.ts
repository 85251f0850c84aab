import { addSpan, type Chunker, type ChunkOptions, type ChunkSpan, splitsSurrogatePair } from './chunker.ts'

/**
 * Packs whole lines.
 *
 * @see docs/http.md#chunkers
 */
export const lineChunker: Chunker = {
  id: 'line:1',
  engine: 'langchain_ts',
  strategy: 'line',
  description:
    'Whole lines, packed up to maxChars characters or the rows of the service, and overlapping by whole lines; a line above maxChars is cut',
  chunk,
}

function chunk(text: string, options: ChunkOptions): ChunkSpan[] {
  const { maxChars, overlapChars } = options
  const maxLines = options.maxLines ?? Number.POSITIVE_INFINITY
  const spans: ChunkSpan[] = []
  let start = 0
  let end = 0
  let lines = 0
  while (end < text.length) {
    const next = pieceEnd(text, end, maxChars)
    if (end > start && (next - start > maxChars || lines >= maxLines)) {
      addSpan(spans, start, end)
      const from = Math.max(end - overlapChars, next - maxChars)
      // Computed again instead of stored, because there may be as many pieces as characters.
      do {
        start = pieceEnd(text, start, maxChars)
        lines--
      } while (start < end && (start < from || lines >= maxLines))
    }
    end = next
    lines++
  }
  if (start < end) addSpan(spans, start, end)
  return spans
}

/** Returns the end of the line at `start`, with its LF, CRLF or CR, or of its first `maxChars` characters. */
function pieceEnd(text: string, start: number, maxChars: number): number {
  const limit = Math.min(start + maxChars, text.length)
  for (let at = start; at < limit; at++) {
    const unit = text.charCodeAt(at)
    if (unit === 10) return at + 1
    if (unit === 13 && text.charCodeAt(at + 1) !== 10) return at + 1
  }
  if (!splitsSurrogatePair(text, limit)) return limit
  return limit - 1 > start ? limit - 1 : limit + 1
}
