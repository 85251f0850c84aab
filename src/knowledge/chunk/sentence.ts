import { breakStrength, findBreaks, type TextBreaks } from './breaks.ts'
import {
  addSpan,
  type Chunker,
  type ChunkOptions,
  type ChunkSpan,
  codePointLength,
  splitsSurrogatePair,
} from './chunker.ts'
import {
  endOfText,
  firstLineStart,
  isLineStart,
  isSpace,
  lastLine,
  lastWord,
  nextLine,
  nextWord,
  skipSpace,
  skipWord,
} from './space.ts'

/**
 * Packs whole sentences into chunks.
 *
 * A chunk ends before a heading, a paragraph or a list item, if one starts late enough in the window of `maxChars`.
 * Otherwise, it ends before the first sentence that does not fit, or else at a line break or between words. A word is
 * split only if it is longer than `maxChars`, after punctuation if possible, and never inside a code point.
 *
 * A chunk starts with the preceding whole sentences that fit into `overlapChars` (or words, if a sentence had to be
 * split). Every character except white space is in a chunk. No chunk consists only of white space, and white space
 * between chunks can be missing from all chunks.
 */
export const sentenceChunker: Chunker = {
  id: 'sentence:1',
  engine: 'workbase',
  strategy: 'sentence',
  description:
    'Chunks of whole sentences, up to maxChars characters, that overlap by whole sentences. They are split before headings, paragraphs and list items if possible.',
  chunk,
}

/** A break of one of these types is preferred to a later sentence if the chunk would fill this share of `maxChars`. */
const preferred = [
  { strength: breakStrength.heading, share: 1 / 2 },
  { strength: breakStrength.paragraph, share: 2 / 3 },
  { strength: breakStrength.item, share: 3 / 4 },
]

/** If a word must be split, this many characters before the end of the window are searched for punctuation. */
const punctuationSearchChars = 64

function chunk(text: string, options: ChunkOptions): ChunkSpan[] {
  const spans: ChunkSpan[] = []
  const last = endOfText(text, text.length)
  if (last === 0) return spans
  const breaks = findBreaks(text)
  const walker = new SentenceWalker(text, last, breaks, options)
  while (last - walker.start > options.maxChars) walker.advance(spans)
  if (walker.start < last)
    addSpan(spans, walker.start, Math.min(text.length, walker.start + options.maxChars))
  return rebalanceTail(text, spans, breaks, last, options)
}

/**
 * Splits a text in one pass. The bounds of each search function only increase, so all its calls together read the text
 * once.
 */
class SentenceWalker {
  /** Offset where the next chunk starts. */
  start: number
  /** Offset of the first text that has not been added to a chunk yet. */
  #newStart: number
  readonly #text: string
  readonly #breaks: TextBreaks
  readonly #options: ChunkOptions
  /** Offset of the last break of each strength up to the end of the window. */
  readonly #latest = [0, 0, 0, 0, 0]
  /** Number of breaks up to the end of the window. */
  #breaksSeen = 0
  /** Index of the first break after `#newStart`. */
  #nextBreak = 0
  /** Index of the first break in the overlap. */
  #overlapBreak = 0
  /** Offset of the next break, and the end of the text before it. Cached, because a long sentence spans many chunks. */
  #nextSentence = { next: -1, end: -1 }
  readonly #textEnd: number
  readonly #skipSpace: FindForward
  /** Like `#skipSpace`, with a separate cache for offsets near `#newStart`. */
  readonly #skipNewSpace: FindForward
  readonly #endOfWord: FindForward
  readonly #lineFrom: FindForward
  readonly #wordFrom: FindForward
  readonly #lineUpTo: FindBackward
  readonly #wordUpTo: FindBackward

  constructor(text: string, last: number, breaks: TextBreaks, options: ChunkOptions) {
    this.#text = text
    this.#textEnd = last
    this.#breaks = breaks
    this.#options = options
    this.#skipSpace = cacheForward(from => skipSpace(text, from))
    this.#skipNewSpace = cacheForward(from => skipSpace(text, from))
    this.#endOfWord = cacheForward(from => skipWord(text, from))
    this.#lineFrom = cacheForward(from => nextLine(text, from))
    this.#wordFrom = cacheForward(from => nextWord(text, from))
    this.#lineUpTo = cacheBackward((from, to) => lastLine(text, from, to))
    this.#wordUpTo = cacheBackward((from, to) => lastWord(text, from, to))
    this.start = firstLineStart(text)
    this.#newStart = this.start
  }

  /**
   * Adds the chunk at `start`, and moves `start` to the next one. Adds nothing if the chunk has to start later to fit new
   * text. The remaining text must be longer than `maxChars`.
   */
  advance(spans: ChunkSpan[]): void {
    const windowEnd = this.start + this.#options.maxChars
    const contentStart = this.#skipNewSpace(this.#newStart)
    const cut = this.#cut(windowEnd, contentStart)
    this.#newStart = cut
    if (cut > contentStart)
      addSpan(spans, this.start, isSpace(this.#text.charCodeAt(windowEnd)) ? Math.min(cut, windowEnd) : cut)
    this.start = cut > contentStart ? this.#overlapStart() : cut
  }

  /**
   * Returns the offset after this chunk and the white space that follows it.
   *
   * @param windowEnd     `maxChars` after the start of the chunk
   * @param contentStart  first new character that is not white space; returned if the chunk must start there
   */
  #cut(windowEnd: number, contentStart: number): number {
    const cutMax = this.#skipSpace(windowEnd)
    const cutMin = Math.max(this.start + this.#options.minChars, contentStart + 1)
    const sentence = this.#breakUpTo(cutMax, cutMin)
    if (sentence >= cutMin) return sentence
    if (cutMax <= contentStart) return contentStart
    const line = this.#lineUpTo(contentStart + 1, cutMax)
    if (line >= cutMin) return line
    const word = this.#wordUpTo(contentStart + 1, cutMax)
    if (word >= cutMin) return word
    const early = Math.max(sentence, line, word)
    if (early > contentStart) return early
    // The word fits if the chunk starts at the word, without the white space before it (such as deep indentation).
    if (this.#endOfWord(contentStart) - contentStart <= this.#options.maxChars) return contentStart
    return this.#cutInWord(windowEnd, contentStart, cutMin)
  }

  /** Returns the offset of a preferred break up to `cutMax`, or else of the last break; 0 if there is no break. */
  #breakUpTo(cutMax: number, cutMin: number): number {
    const { offsets, count, strengths } = this.#breaks
    for (; this.#breaksSeen < count && offsets[this.#breaksSeen]! <= cutMax; this.#breaksSeen++)
      this.#latest[strengths[this.#breaksSeen]!] = offsets[this.#breaksSeen]!
    for (const { strength, share } of preferred) {
      const offset = this.#latest[strength]!
      if (offset >= cutMin && offset >= this.start + share * this.#options.maxChars) return offset
    }
    return Math.max(...this.#latest)
  }

  #cutInWord(windowEnd: number, contentStart: number, cutMin: number): number {
    const text = this.#text
    const floor = Math.max(cutMin, windowEnd - punctuationSearchChars)
    for (let offset = windowEnd; offset >= floor; offset--)
      if (isBreakAfter(text.charCodeAt(offset - 1)) && !splitsSurrogatePair(text, offset)) return offset
    if (!splitsSurrogatePair(text, windowEnd)) return windowEnd
    if (windowEnd - 1 > contentStart) return windowEnd - 1
    // Without the white space before it, the surrogate pair fits into any window of at least two code units.
    return this.start < contentStart ? contentStart : windowEnd + 1
  }

  /** Returns the start of the chunk that continues at `#newStart`, including its overlap of whole sentences. */
  #overlapStart(): number {
    const { offsets, count } = this.#breaks
    const newStart = this.#newStart
    while (this.#nextBreak < count && offsets[this.#nextBreak]! <= newStart) this.#nextBreak++
    const bound = Math.max(newStart - this.#options.overlapChars, this.start + 1, this.#minStart(newStart))
    if (bound >= newStart) return newStart
    while (this.#overlapBreak < count && offsets[this.#overlapBreak]! < bound) this.#overlapBreak++
    if (this.#overlapBreak < count && offsets[this.#overlapBreak]! < newStart)
      return offsets[this.#overlapBreak]!
    if (offsets[this.#nextBreak - 1] === newStart) return newStart
    const line = this.#lineFrom(bound)
    if (line < newStart) return line
    return isLineStart(this.#text, newStart) ? newStart : Math.min(newStart, this.#wordFrom(bound))
  }

  /**
   * Returns the smallest start offset from which a chunk can include the whole next sentence or, if the sentence is too
   * long, the next word.
   */
  #minStart(newStart: number): number {
    const { maxChars } = this.#options
    const next = this.#breaks.offsets[this.#nextBreak] ?? 0
    if (next !== this.#nextSentence.next)
      this.#nextSentence = {
        next,
        end: this.#nextBreak < this.#breaks.count ? endOfText(this.#text, next) : this.#textEnd,
      }
    if (this.#nextSentence.end - newStart <= maxChars) return this.#nextSentence.end - maxChars
    const word = this.#endOfWord(this.#skipNewSpace(newStart))
    return (word - newStart <= maxChars ? word : newStart + codePointLength(this.#text, newStart)) - maxChars
  }
}

/**
 * If the last chunk is shorter than minChars, moves sentences to it from the previous chunk. The two chunks are not
 * merged, because together they would exceed maxChars.
 */
function rebalanceTail(
  text: string,
  spans: ChunkSpan[],
  breaks: TextBreaks,
  last: number,
  options: ChunkOptions,
): ChunkSpan[] {
  const [thirdLast, secondLast, tail] = [spans.at(-3), spans.at(-2), spans.at(-1)]
  if (!secondLast || !tail || last - tail.start >= options.minChars) return spans
  const { maxChars, minChars, overlapChars } = options
  const cut = breaks.offsets[firstBreak(breaks, last - minChars + 1) - 1] ?? 0
  const low = Math.max(
    secondLast.start + Math.max(minChars, 1),
    thirdLast ? skipSpace(text, thirdLast.end) + 1 : 0,
  )
  if (cut < low || cut >= secondLast.end || last - cut > maxChars) return spans
  const bound = Math.max(cut - overlapChars, secondLast.start + 1, last - maxChars)
  const start = breaks.offsets[firstBreak(breaks, bound)]!
  const end = Math.min(text.length, start + maxChars)
  return [...spans.slice(0, -2), { start: secondLast.start, end: cut }, { start, end }]
}

/** Returns the index of the first break at or after an offset. */
function firstBreak({ offsets, count }: TextBreaks, offset: number): number {
  let low = 0
  let high = count
  while (low < high) {
    const middle = (low + high) >> 1
    if (offsets[middle]! < offset) low = middle + 1
    else high = middle
  }
  return low
}

/**
 * Returns true if a long word can be cut after this character, because it is ASCII punctuation, or is in a range of
 * mainly East Asian characters (U+2E80 and above, without Hangul syllables).
 */
function isBreakAfter(codeUnit: number): boolean {
  if (codeUnit >= 0x80) return codeUnit >= 0x2e80 && (codeUnit < 0xac00 || codeUnit > 0xdfff)
  return (
    codeUnit > 32 &&
    !(codeUnit >= 48 && codeUnit <= 57) &&
    !(codeUnit >= 65 && codeUnit <= 90) &&
    !(codeUnit >= 97 && codeUnit <= 122)
  )
}

type FindForward = (from: number) => number

/** Wraps a search for the first offset at or after `from`. Reuses the last result as long as it is correct. */
function cacheForward(find: FindForward): FindForward {
  let lastFrom = 0
  let lastResult = -1
  return from => {
    if (from < lastFrom || from > lastResult) {
      lastFrom = from
      lastResult = find(from)
    }
    return lastResult
  }
}

type FindBackward = (from: number, to: number) => number

/**
 * Wraps a search for the last offset in [from, to]. The returned function returns -1 if nothing is found. It reads each
 * offset once if the bounds never decrease.
 */
function cacheBackward(find: FindBackward): FindBackward {
  let lastFound = -1
  let searchedTo = 0
  return (from, to) => {
    const low = Math.max(from, searchedTo)
    const offset = find(low, to)
    if (offset >= low) lastFound = offset
    searchedTo = Math.max(searchedTo, to + 1)
    return lastFound >= from ? lastFound : -1
  }
}
