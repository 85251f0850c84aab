import { add, type Chunker, type ChunkOptions, pointLength, type Span, splitsPair } from './chunker.ts'

/** In the order in which they are tried; a blank line may end its lines with CRLF. */
const separators: readonly (readonly string[])[] = [['\n\n', '\n\r\n'], ['\n'], ['. '], ['? '], ['! '], [' ']]

/** Windows of `maxChars`, each cut after its best last separator. @see docs/http.md#chunkers */
export const recursive: Chunker = {
  id: 'recursive-char:1',
  engine: 'langchain_ts',
  strategy: 'recursive',
  description:
    'Windows of maxChars characters, cut after the last blank line, line end, sentence end or space that leaves minChars, and overlapping by overlapChars',
  chunk,
}

/** A last chunk below minChars cannot merge: it exists only where it and the chunk before it exceed maxChars. */
function chunk(text: string, options: ChunkOptions): Span[] {
  const spans: Span[] = []
  const latest = separators.map(forms => forms.map(form => latestOf(text, form)))
  let start = 0
  let cut = 0
  while (text.length - start > options.maxChars) {
    const before = cut
    cut = softCut(latest, start, before, options) ?? hardCut(text, start, before, options.maxChars)
    add(spans, start, cut)
    start = nextStart(text, start, cut, options)
  }
  if (start < text.length) add(spans, start, text.length)
  return spans
}

type Latest = (from: number, to: number) => number | undefined

function softCut(
  latest: readonly Latest[][],
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
  if (!splitsPair(text, cut)) return cut
  return cut - 1 > Math.max(start, before) ? cut - 1 : cut + 1
}

/** Later than `overlapChars` before the cut where the next window would otherwise not hold a code point of its own. */
function nextStart(
  text: string,
  start: number,
  cut: number,
  { maxChars, overlapChars }: ChunkOptions,
): number {
  const room = cut + pointLength(text, cut) - maxChars
  const next = Math.min(cut, Math.max(cut - overlapChars, start + 1, room))
  return splitsPair(text, next) ? next + 1 : next
}

/**
 * End of the last separator that lies in [from, to), for bounds that never decrease from call to call.
 *
 * Each character is looked at once in all calls, so that windows which overlap, or hold no separator, cost nothing
 * extra: `lastIndexOf` on the text would run back to its beginning.
 */
function latestOf(text: string, separator: string): Latest {
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
