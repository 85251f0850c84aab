import {
  addSpan,
  type Chunker,
  type ChunkOptions,
  type ChunkSpan,
  codePointLength,
  splitsSurrogatePair,
} from './chunker.ts'

/** Separators in order of preference. The lines around a blank line may end with CRLF. */
const separators: readonly (readonly string[])[] = [['\n\n', '\n\r\n'], ['\n'], ['. '], ['? '], ['! '], [' ']]

/**
 * Cuts windows of `maxChars` after the last of their best separators.
 *
 * @see docs/http.md#chunkers
 */
export const recursiveChunker: Chunker = {
  id: 'recursive-char:1',
  engine: 'langchain_ts',
  strategy: 'recursive',
  description:
    'Windows of maxChars characters, cut after the last blank line, line end, sentence end or space that leaves minChars, and overlapping by overlapChars',
  chunk,
}

/** Splits a text. A short last chunk stays, because together with the one before it would exceed maxChars. */
function chunk(text: string, options: ChunkOptions): ChunkSpan[] {
  const spans: ChunkSpan[] = []
  const latest = separators.map(forms => forms.map(form => latestOf(text, form)))
  let start = 0
  let cut = 0
  while (text.length - start > options.maxChars) {
    const before = cut
    cut = softCut(latest, start, before, options) ?? hardCut(text, start, before, options.maxChars)
    addSpan(spans, start, cut)
    start = nextStart(text, start, cut, options)
  }
  if (start < text.length) addSpan(spans, start, text.length)
  return spans
}

type FindLatest = (from: number, to: number) => number | undefined

function softCut(
  latest: readonly FindLatest[][],
  start: number,
  before: number,
  options: ChunkOptions,
): number | undefined {
  for (const forms of latest) {
    const ends = forms.map(form => form(start + options.minChars, start + options.maxChars) ?? 0)
    const cut = Math.max(...ends)
    if (cut > before) return cut
  }
  return undefined
}

function hardCut(text: string, start: number, before: number, maxChars: number): number {
  const cut = start + maxChars
  if (!splitsSurrogatePair(text, cut)) return cut
  return cut - 1 > Math.max(start, before) ? cut - 1 : cut + 1
}

/**
 * Returns the start of the next window: `overlapChars` before the cut, or later if it would not pass the cut.
 */
function nextStart(
  text: string,
  start: number,
  cut: number,
  { maxChars, overlapChars }: ChunkOptions,
): number {
  const room = cut + codePointLength(text, cut) - maxChars
  const next = Math.min(cut, Math.max(cut - overlapChars, start + 1, room))
  return splitsSurrogatePair(text, next) ? next + 1 : next
}

/**
 * Returns a search for the end of the last separator in [from, to). Bounds must never decrease.
 *
 * Reads each character once over all calls, even if windows overlap or contain no separator. `lastIndexOf` on
 * the text would search back to its beginning.
 */
function latestOf(text: string, separator: string): FindLatest {
  let last = -1
  let searched = 0
  return (from, to) => {
    const low = Math.max(from, searched)
    if (to - separator.length >= low) {
      const found = text.slice(low, to).lastIndexOf(separator)
      if (found >= 0) last = low + found
      searched = to - separator.length + 1
    }
    return last >= from ? last + separator.length : undefined
  }
}
