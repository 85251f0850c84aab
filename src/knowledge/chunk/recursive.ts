import {
  addSpan,
  type Chunker,
  type ChunkOptions,
  type ChunkSpan,
  codePointLength,
  splitsSurrogatePair,
} from './chunker.ts'

/** Separators in order of preference. A blank line may consist of LF or CRLF line ends. */
const separators: readonly (readonly string[])[] = [['\n\n', '\n\r\n'], ['\n'], ['. '], ['? '], ['! '], [' ']]

/**
 * Splits a text into windows of `maxChars`, each cut after the last occurrence of the best separator in it.
 *
 * @see docs/http.md#chunkers
 */
export const recursiveChunker: Chunker = {
  id: 'recursive-char:1',
  engine: 'langchain_ts',
  strategy: 'recursive',
  description:
    'Chunks of up to maxChars characters, split after the last blank line, line end, sentence end or space beyond minChars, overlapping by overlapChars',
  chunk,
}

/** Splits a text. A short last chunk is not merged with the previous one, because both would exceed maxChars. */
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
 * Returns the start of the next window: `overlapChars` before the cut, or later if the window would otherwise end at
 * or before the cut.
 */
function nextStart(
  text: string,
  start: number,
  cut: number,
  { maxChars, overlapChars }: ChunkOptions,
): number {
  const minStart = cut + codePointLength(text, cut) - maxChars
  const next = Math.min(cut, Math.max(cut - overlapChars, start + 1, minStart))
  return splitsSurrogatePair(text, next) ? next + 1 : next
}

/**
 * Returns a function that finds the end of the last separator in [from, to). In later calls, the bounds must not
 * decrease.
 *
 * All calls together read each character once, even if windows overlap or contain no separator. `lastIndexOf` on
 * the whole text would search back to its start.
 */
function latestOf(text: string, separator: string): FindLatest {
  let last = -1
  let searched = 0
  return (from, to) => {
    const low = Math.max(from, searched)
    if (to - separator.length >= low) {
      const index = text.slice(low, to).lastIndexOf(separator)
      if (index >= 0) last = low + index
      searched = to - separator.length + 1
    }
    return last >= from ? last + separator.length : undefined
  }
}
