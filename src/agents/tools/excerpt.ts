import { cutUnits } from '../../base/cut-units.ts'
import { stem, terms, wordSpans } from '../../base/words.ts'
import { findBreaks } from '../../knowledge/chunk/breaks.ts'

/** A text, or an excerpt of it. `isCut` is true for an excerpt. */
export interface Excerpt {
  readonly text: string
  readonly isCut: boolean
}

/** Offsets in a text; `end` is exclusive. */
interface TextSpan {
  readonly start: number
  readonly end: number
}

const ellipsis = '…'
/** Maximum number of characters to search. Searching a huge text would block the process. */
const scannedCharsMax = 200_000

/**
 * Returns a text if it is short enough. Otherwise returns an excerpt: the shortest span with the most distinct query
 * words, and the text around it. The excerpt starts and ends at the boundaries of sentences, or of words if it would be
 * too short otherwise, with an ellipsis where text is omitted. If the first 200,000 characters contain no query word,
 * returns the beginning.
 *
 * @param charsMax  maximum length of the result, in UTF-16 units
 */
export function excerptOf(text: string, query: string, charsMax: number): Excerpt {
  if (text.length <= charsMax) return { text, isCut: false }
  const spanCharsMax = charsMax - 2 * ellipsis.length
  if (spanCharsMax <= 0) return { text: '', isCut: true }
  const scanned = cutUnits(text, scannedCharsMax)
  const { start, end } = windowAround(scanned, bestMatch(scanned, query, spanCharsMax), spanCharsMax)
  const before = start > 0 ? ellipsis : ''
  const after = end < text.length ? ellipsis : ''
  return { text: before + text.slice(start, end).trim() + after, isCut: true }
}

function bestMatch(text: string, query: string, charsMax: number): TextSpan {
  const queryTerms = new Set(terms(query))
  const counts = new Map<string, number>()
  const window: (TextSpan & { term: string })[] = []
  let best: TextSpan & { distinct: number } = { start: 0, end: 0, distinct: 0 }
  for (const { word, start, end } of wordSpans(text)) {
    const term = stem(word)
    if (!queryTerms.has(term) || end - start > charsMax) continue
    window.push({ term, start, end })
    counts.set(term, (counts.get(term) ?? 0) + 1)
    while (end - window[0]!.start > charsMax || counts.get(window[0]!.term)! > 1) {
      const { term: droppedTerm } = window.shift()!
      const count = counts.get(droppedTerm)! - 1
      if (count === 0) counts.delete(droppedTerm)
      else counts.set(droppedTerm, count)
    }
    const span = { start: window[0]!.start, end, distinct: counts.size }
    const isShorter = span.distinct === best.distinct && end - span.start < best.end - best.start
    if (span.distinct > best.distinct || isShorter) best = span
  }
  return best
}

/** Extends a span by whole sentences on both sides, or by words if the sentences fill less than half of `charsMax`. */
function windowAround(text: string, match: TextSpan, charsMax: number): TextSpan {
  const sentences = extendBySentences(text, match, charsMax)
  if (sentences && sentences.end - sentences.start >= charsMax / 2) return sentences
  return extendByWords(text, sentences ?? match, charsMax)
}

function extendBySentences(text: string, match: TextSpan, charsMax: number): TextSpan | undefined {
  const { offsets, count } = findBreaks(text)
  const edges = [0, ...offsets.subarray(0, count), text.length]
  let from = edges.findLastIndex(edge => edge <= match.start)
  let to = Math.max(
    from + 1,
    edges.findIndex(edge => edge >= match.end),
  )
  const fits = (first: number, last: number) =>
    first >= 0 && last < edges.length && edges[last]! - edges[first]! <= charsMax
  if (!fits(from, to)) return undefined
  for (;;) {
    const canExtendEnd = fits(from, to + 1)
    if (canExtendEnd) to++
    const canExtendStart = fits(from - 1, to)
    if (canExtendStart) from--
    if (!canExtendEnd && !canExtendStart) return { start: edges[from]!, end: edges[to]! }
  }
}

function extendByWords(text: string, inner: TextSpan, charsMax: number): TextSpan {
  const margin = Math.floor((charsMax - (inner.end - inner.start)) / 2)
  const last = Math.min(text.length, Math.max(0, inner.start - margin) + charsMax)
  const first = Math.max(0, last - charsMax)
  return { start: startAfterSpace(text, first, inner.start), end: endBeforeSpace(text, inner.end, last) }
}

/** Returns the start of the first word in a range, or the start of the range if it contains no white space. */
function startAfterSpace(text: string, start: number, end: number): number {
  if (start === 0) return 0
  for (let at = start; at <= end; at++) if (/\s/.test(text[at - 1]!)) return at
  return isLowSurrogate(text, start) ? start + 1 : start
}

/** Returns the end of the last word in a range, or the end of the range if it contains no white space. */
function endBeforeSpace(text: string, start: number, end: number): number {
  if (end === text.length) return end
  for (let at = end; at >= start; at--) if (/\s/.test(text[at]!)) return at
  return isLowSurrogate(text, end) ? end - 1 : end
}

function isLowSurrogate(text: string, at: number): boolean {
  return /[\uDC00-\uDFFF]/.test(text[at] ?? '')
}
