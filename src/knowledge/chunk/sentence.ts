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
 * Packs whole sentences.
 *
 * A chunk is cut before a heading, a paragraph or a list item that begins late enough in it, else before the
 * first sentence that does not fit, else at a line end or between words. Only a word above `maxChars` is cut,
 * after punctuation if possible, and never inside a code point. A chunk begins with the preceding whole
 * sentences that fit into `overlapChars` (or words, if a sentence had to be cut). Every character except
 * white space is in a chunk. A chunk is never only white space, and white space between chunks may be in
 * none.
 */
export const sentenceChunker: Chunker = {
  id: 'sentence:1',
  engine: 'workbase',
  strategy: 'sentence',
  description:
    'Whole sentences up to maxChars characters, cut rather before headings, paragraphs and list items, and overlapping by whole sentences',
  chunk,
}

/** Breaks that are preferred to a later sentence, and the share of `maxChars` after which they are. */
const preferred = [
  { strength: breakStrength.heading, share: 1 / 2 },
  { strength: breakStrength.paragraph, share: 2 / 3 },
  { strength: breakStrength.item, share: 3 / 4 },
]

/** Number of characters before the end of a chunk to search for punctuation in a word that must be cut. */
const punctuationReach = 64

function chunk(text: string, options: ChunkOptions): ChunkSpan[] {
  const spans: ChunkSpan[] = []
  const last = endOfText(text, text.length)
  if (last === 0) return spans
  const breaks = findBreaks(text)
  const walk = new SentenceWalker(text, last, breaks, options)
  while (last - walk.start > options.maxChars) walk.advance(spans)
  if (walk.start < last) addSpan(spans, walk.start, Math.min(text.length, walk.start + options.maxChars))
  return evenTail(text, spans, breaks, last, options)
}

/** A pass over a text. Searched offsets only increase, so that each search reads the text once in total. */
class SentenceWalker {
  /** Offset where the next chunk begins. */
  start: number
  /** Offset of the first text that is not in a chunk yet. */
  #fresh: number
  readonly #text: string
  readonly #breaks: TextBreaks
  readonly #options: ChunkOptions
  /** Last break in the window for each strength, and the number of breaks up to the end of the window. */
  readonly #latest = [0, 0, 0, 0, 0]
  #reached = 0
  /** Index of the first break after `#fresh`, and of the first one in the overlap. */
  #next = 0
  #first = 0
  /** The last sentence whose end was computed, because many chunks need the end of a long one. */
  #unit = { next: -1, end: -1 }
  readonly #last: number
  readonly #skipSpace: FindForward
  readonly #ink: FindForward
  readonly #endOfWord: FindForward
  readonly #lineFrom: FindForward
  readonly #wordFrom: FindForward
  readonly #lineUpTo: FindBackward
  readonly #wordUpTo: FindBackward

  constructor(text: string, last: number, breaks: TextBreaks, options: ChunkOptions) {
    this.#text = text
    this.#last = last
    this.#breaks = breaks
    this.#options = options
    this.#skipSpace = cacheForward(from => skipSpace(text, from))
    this.#ink = cacheForward(from => skipSpace(text, from))
    this.#endOfWord = cacheForward(from => skipWord(text, from))
    this.#lineFrom = cacheForward(from => nextLine(text, from))
    this.#wordFrom = cacheForward(from => nextWord(text, from))
    this.#lineUpTo = cacheBackward((from, to) => lastLine(text, from, to))
    this.#wordUpTo = cacheBackward((from, to) => lastWord(text, from, to))
    this.start = beginningOf(text)
    this.#fresh = this.start
  }

  /** Adds the chunk at `start`, which does not extend to the end of the text, and moves to the next. */
  advance(spans: ChunkSpan[]): void {
    const full = this.start + this.#options.maxChars
    const ink = this.#ink(this.#fresh)
    const cut = this.#cut(full, ink)
    this.#fresh = cut
    if (cut > ink)
      addSpan(spans, this.start, isSpace(this.#text.charCodeAt(full)) ? Math.min(cut, full) : cut)
    this.start = cut > ink ? this.#overlapStart() : cut
  }

  /**
   * Returns the offset after this chunk and the white space that follows it.
   *
   * @param full  end of the window
   * @param ink   first new character that is not white space; returned if the chunk must begin there
   */
  #cut(full: number, ink: number): number {
    const reach = this.#skipSpace(full)
    const low = Math.max(this.start + this.#options.minChars, ink + 1)
    const sentence = this.#breakUpTo(reach, low)
    if (sentence >= low) return sentence
    if (reach <= ink) return ink
    const line = this.#lineUpTo(ink + 1, reach)
    if (line >= low) return line
    const word = this.#wordUpTo(ink + 1, reach)
    if (word >= low) return word
    const early = Math.max(sentence, line, word)
    if (early > ink) return early
    // The word fits without the white space before it, for example after deep indentation.
    if (this.#endOfWord(ink) - ink <= this.#options.maxChars) return ink
    return this.#cutInWord(full, ink, low)
  }

  /** Returns the preferred break in the window, else the last one; 0 if there are none. */
  #breakUpTo(reach: number, low: number): number {
    const { at, count, strength: strengths } = this.#breaks
    for (; this.#reached < count && at[this.#reached]! <= reach; this.#reached++)
      this.#latest[strengths[this.#reached]!] = at[this.#reached]!
    for (const { strength, share } of preferred) {
      const found = this.#latest[strength]!
      if (found >= low && found >= this.start + share * this.#options.maxChars) return found
    }
    return Math.max(...this.#latest)
  }

  #cutInWord(full: number, ink: number, low: number): number {
    const text = this.#text
    const floor = Math.max(low, full - punctuationReach)
    for (let at = full; at >= floor; at--)
      if (isBreakAfter(text.charCodeAt(at - 1)) && !splitsSurrogatePair(text, at)) return at
    if (!splitsSurrogatePair(text, full)) return full
    if (full - 1 > ink) return full - 1
    // A pair fits into any window above one character once the white space before it is left out.
    return this.start < ink ? ink : full + 1
  }

  /** Returns the start of the chunk that continues at `#fresh`, with its overlap of whole sentences. */
  #overlapStart(): number {
    const { at, count } = this.#breaks
    const fresh = this.#fresh
    while (this.#next < count && at[this.#next]! <= fresh) this.#next++
    const bound = Math.max(fresh - this.#options.overlapChars, this.start + 1, this.#roomFor(fresh))
    if (bound >= fresh) return fresh
    while (this.#first < count && at[this.#first]! < bound) this.#first++
    if (this.#first < count && at[this.#first]! < fresh) return at[this.#first]!
    if (at[this.#next - 1] === fresh) return fresh
    const line = this.#lineFrom(bound)
    if (line < fresh) return line
    return isLineStart(this.#text, fresh) ? fresh : Math.min(fresh, this.#wordFrom(bound))
  }

  /**
   * Returns the earliest start of a chunk that has room for the next sentence, or at least for the next word.
   */
  #roomFor(fresh: number): number {
    const { maxChars } = this.#options
    const next = this.#breaks.at[this.#next] ?? 0
    if (next !== this.#unit.next)
      this.#unit = { next, end: this.#next < this.#breaks.count ? endOfText(this.#text, next) : this.#last }
    if (this.#unit.end - fresh <= maxChars) return this.#unit.end - maxChars
    const word = this.#endOfWord(this.#ink(fresh))
    return (word - fresh <= maxChars ? word : fresh + codePointLength(this.#text, fresh)) - maxChars
  }
}

/** Moves sentences to a last chunk below minChars from the one before. Merging them would exceed maxChars. */
function evenTail(
  text: string,
  spans: ChunkSpan[],
  breaks: TextBreaks,
  last: number,
  options: ChunkOptions,
): ChunkSpan[] {
  const [third, before, tail] = [spans.at(-3), spans.at(-2), spans.at(-1)]
  if (!before || !tail || last - tail.start >= options.minChars) return spans
  const { maxChars, minChars, overlapChars } = options
  const cut = breaks.at[firstBreak(breaks, last - minChars + 1) - 1] ?? 0
  const low = Math.max(before.start + Math.max(minChars, 1), third ? skipSpace(text, third.end) + 1 : 0)
  if (cut < low || cut >= before.end || last - cut > maxChars) return spans
  const bound = Math.max(cut - overlapChars, before.start + 1, last - maxChars)
  const start = breaks.at[firstBreak(breaks, bound)]!
  const end = Math.min(text.length, start + maxChars)
  return [...spans.slice(0, -2), { start: before.start, end: cut }, { start, end }]
}

/** Returns the index of the first break at or after an offset. */
function firstBreak({ at, count }: TextBreaks, offset: number): number {
  let low = 0
  let high = count
  while (low < high) {
    const middle = (low + high) >> 1
    if (at[middle]! < offset) low = middle + 1
    else high = middle
  }
  return low
}

/** Returns the beginning of the first line that is not blank. */
function beginningOf(text: string): number {
  let at = skipSpace(text, 0)
  while (at > 0 && !isLineStart(text, at)) at--
  return at
}

/**
 * Returns true if a long word can be cut after this character: after punctuation, and between characters of
 * scripts without spaces.
 */
function isBreakAfter(unit: number): boolean {
  if (unit >= 0x80) return unit >= 0x2e80 && (unit < 0xac00 || unit > 0xdfff)
  return (
    unit > 32 && !(unit >= 48 && unit <= 57) && !(unit >= 65 && unit <= 90) && !(unit >= 97 && unit <= 122)
  )
}

type FindForward = (from: number) => number

/** Caches a search for the first offset at or after `from`, while later calls have the same result. */
function cacheForward(find: FindForward): FindForward {
  let asked = 0
  let found = -1
  return from => {
    if (from < asked || from > found) {
      asked = from
      found = find(from)
    }
    return found
  }
}

type FindBackward = (from: number, to: number) => number

/**
 * Returns a search for the last offset in [from, to], or -1. Reads each offset once if the bounds increase.
 */
function cacheBackward(find: FindBackward): FindBackward {
  let last = -1
  let searched = 0
  return (from, to) => {
    const low = Math.max(from, searched)
    const found = find(low, to)
    if (found >= low) last = found
    searched = Math.max(searched, to + 1)
    return last >= from ? last : -1
  }
}
