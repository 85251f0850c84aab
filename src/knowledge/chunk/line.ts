import { addSpan, type Chunker, type ChunkOptions, type ChunkSpan, splitsSurrogatePair } from './chunker.ts'

/**
 * Packs whole lines into chunks.
 *
 * @see docs/http.md#chunkers
 */
export const lineChunker: Chunker = {
  id: 'line:1',
  engine: 'langchain_ts',
  strategy: 'line',
  description:
    'Chunks of whole lines, up to maxChars characters or the maximum number of rows, that overlap by whole lines. A line longer than maxChars is split.',
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
      // Line ends are not stored but computed again, because a text can have as many lines as characters.
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

/** Returns the end of the line at `start`, including its LF, CRLF or CR; at most `maxChars` after `start`. */
function pieceEnd(text: string, start: number, maxChars: number): number {
  const limit = Math.min(start + maxChars, text.length)
  for (let offset = start; offset < limit; offset++) {
    const codeUnit = text.charCodeAt(offset)
    if (codeUnit === 10) return offset + 1
    if (codeUnit === 13 && text.charCodeAt(offset + 1) !== 10) return offset + 1
  }
  if (!splitsSurrogatePair(text, limit)) return limit
  return limit - 1 > start ? limit - 1 : limit + 1
}
