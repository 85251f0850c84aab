import {
  addSpan,
  type Chunker,
  type ChunkOptions,
  type ChunkSpan,
  codePointLength,
  splitsSurrogatePair,
} from './chunker.ts'

/** Separators in order of preference. A blank line can have LF or CRLF line endings. */
const separators: readonly (readonly string[])[] = [['\n\n', '\n\r\n'], ['\n'], ['. '], ['? '], ['! '], [' ']]

/**
 * Splits a text into windows of `maxChars`. Each is cut after the last occurrence of the most preferred separator that
 * it contains.
 *
 * @see docs/http.md#chunkers
 */
export const recursiveChunker: Chunker = {
  id: 'recursive-char:1',
  engine: 'langchain_ts',
  strategy: 'recursive',
  description:
    'Chunks of up to maxChars characters that overlap by overlapChars. Each is split after its last blank line beyond minChars. Without a blank line, it is split after the last line break, sentence or space.',
  chunk,
}

/** A short last chunk is not merged with the previous one, because together they would exceed maxChars. */
function chunk(text: string, options: ChunkOptions): ChunkSpan[] {
  const spans: ChunkSpan[] = []
  const separatorFinders = separators.map(alternatives =>
    alternatives.map(separator => createSeparatorFinder(text, separator)),
  )
  let start = 0
  let cut = 0
  while (text.length - start > options.maxChars) {
    const previousCut = cut
    cut =
      softCut(separatorFinders, start, previousCut, options) ??
      hardCut(text, start, previousCut, options.maxChars)
    addSpan(spans, start, cut)
    start = nextStart(text, start, cut, options)
  }
  if (start < text.length) addSpan(spans, start, text.length)
  return spans
}

type FindLastSeparator = (from: number, to: number) => number | undefined

function softCut(
  separatorFinders: readonly FindLastSeparator[][],
  start: number,
  previousCut: number,
  options: ChunkOptions,
): number | undefined {
  for (const finders of separatorFinders) {
    const ends = finders.map(findLast => findLast(start + options.minChars, start + options.maxChars) ?? 0)
    const cut = Math.max(...ends)
    if (cut > previousCut) return cut
  }
  return undefined
}

function hardCut(text: string, start: number, previousCut: number, maxChars: number): number {
  const cut = start + maxChars
  if (!splitsSurrogatePair(text, cut)) return cut
  return cut - 1 > Math.max(start, previousCut) ? cut - 1 : cut + 1
}

/**
 * Returns the start of the next window: `overlapChars` before the cut, or later if the window would otherwise not reach
 * beyond the cut.
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
 * Returns a function that finds the last separator in [from, to), and returns the offset after it. From call to call,
 * the bounds must not decrease.
 *
 * All calls together read each character once, even if windows overlap or contain no separator. `lastIndexOf` on
 * the whole text could search back to its start in each call.
 */
function createSeparatorFinder(text: string, separator: string): FindLastSeparator {
  let lastIndex = -1
  let searchedTo = 0
  return (from, to) => {
    const low = Math.max(from, searchedTo)
    if (to - separator.length >= low) {
      const index = text.slice(low, to).lastIndexOf(separator)
      if (index >= 0) lastIndex = low + index
      searchedTo = to - separator.length + 1
    }
    return lastIndex >= from ? lastIndex + separator.length : undefined
  }
}
