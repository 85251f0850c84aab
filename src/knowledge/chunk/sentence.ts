import { type Breaks, findBreaks, strength } from './breaks.ts'
import { add, type Chunker, type ChunkOptions, pointLength, type Span, splitsPair } from './chunker.ts'
import {
  endOfInk,
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
 * Whole sentences, packed.
 *
 * A chunk is cut before a heading, a paragraph or a list item where one begins late enough in it, else before the
 * first sentence that does not fit, else at a line end or between words. Only a word above `maxChars` is cut, after
 * punctuation where there is some, and never inside a code point. A chunk begins with the whole sentences before
 * it that fit into `overlapChars` (words, where a sentence had to be cut). Every character that is not white space
 * is in a chunk; white space between chunks may be in none, and a chunk is never white space alone.
 */
export const sentence: Chunker = {
  id: 'sentence:1',
  engine: 'workbase',
  strategy: 'sentence',
  description:
    'Whole sentences up to maxChars characters, cut rather before headings, paragraphs and list items, and overlapping by whole sentences',
  chunk,
}

/** Which break is preferred to a later sentence, and from which share of `maxChars` on. */
const preferred = [
  { strength: strength.heading, share: 1 / 2 },
  { strength: strength.paragraph, share: 2 / 3 },
  { strength: strength.item, share: 3 / 4 },
]

/** Characters before the end of a chunk that are searched for punctuation in a word that must be cut. */
const punctuationReach = 64

function chunk(text: string, options: ChunkOptions): Span[] {
  const spans: Span[] = []
  const last = endOfInk(text, text.length)
  if (last === 0) return spans
  const breaks = findBreaks(text)
  const walk = new Walk(text, last, breaks, options)
  while (last - walk.start > options.maxChars) walk.advance(spans)
  if (walk.start < last) add(spans, walk.start, Math.min(text.length, walk.start + options.maxChars))
  return evenTail(text, spans, breaks, last, options)
}

/** One way through a text. The offsets that are asked for only grow, so that each search is one pass in all. */
class Walk {
  /** Where the next chunk begins. */
  start: number
  /** Where the text begins that is in no chunk yet. */
  #fresh: number
  readonly #text: string
  readonly #breaks: Breaks
  readonly #options: ChunkOptions
  /** For each strength, the last break that the window reaches; and how many breaks it reaches. */
  readonly #latest = [0, 0, 0, 0, 0]
  #reached = 0
  /** Index of the first break after `#fresh`, and of the first in the overlap. */
  #next = 0
  #first = 0
  /** The last sentence whose end was asked for, as a long one is asked for by many chunks. */
  #unit = { next: -1, end: -1 }
  readonly #last: number
  readonly #skipSpace: Forward
  readonly #ink: Forward
  readonly #endOfWord: Forward
  readonly #lineFrom: Forward
  readonly #wordFrom: Forward
  readonly #lineUpTo: Backward
  readonly #wordUpTo: Backward

  constructor(text: string, last: number, breaks: Breaks, options: ChunkOptions) {
    this.#text = text
    this.#last = last
    this.#breaks = breaks
    this.#options = options
    this.#skipSpace = forward(from => skipSpace(text, from))
    this.#ink = forward(from => skipSpace(text, from))
    this.#endOfWord = forward(from => skipWord(text, from))
    this.#lineFrom = forward(from => nextLine(text, from))
    this.#wordFrom = forward(from => nextWord(text, from))
    this.#lineUpTo = backward((from, to) => lastLine(text, from, to))
    this.#wordUpTo = backward((from, to) => lastWord(text, from, to))
    this.start = beginningOf(text)
    this.#fresh = this.start
  }

  /** Add the chunk of the window at `start`, which the text exceeds, and go to the next. */
  advance(spans: Span[]): void {
    const full = this.start + this.#options.maxChars
    const ink = this.#ink(this.#fresh)
    const cut = this.#cut(full, ink)
    this.#fresh = cut
    if (cut > ink) add(spans, this.start, isSpace(this.#text.charCodeAt(full)) ? Math.min(cut, full) : cut)
    this.start = cut > ink ? this.#overlapStart() : cut
  }

  /**
   * Where the text goes on after this chunk, white space after the chunk being skipped.
   *
   * @param full  end of the window
   * @param ink  first character of the chunk that no other has; as a result, that the chunk has to begin there
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
    // A word that fits without the white space before it, as after deep indentation.
    if (this.#endOfWord(ink) - ink <= this.#options.maxChars) return ink
    return this.#cutInWord(full, ink, low)
  }

  /** The preferred break that the window reaches, else the last one; 0 for none. */
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
      if (isBreakAfter(text.charCodeAt(at - 1)) && !splitsPair(text, at)) return at
    if (!splitsPair(text, full)) return full
    if (full - 1 > ink) return full - 1
    // Only a window of one character is too small for a pair; any other first leaves out the white space before it.
    return this.start < ink ? ink : full + 1
  }

  /** Where the chunk begins that is to hold the text from `#fresh`: earlier by the whole sentences that may overlap. */
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

  /** The earliest start at which a chunk still takes in the next sentence, or at least the next word. */
  #roomFor(fresh: number): number {
    const { maxChars } = this.#options
    const next = this.#breaks.at[this.#next] ?? 0
    if (next !== this.#unit.next)
      this.#unit = { next, end: this.#next < this.#breaks.count ? endOfInk(this.#text, next) : this.#last }
    if (this.#unit.end - fresh <= maxChars) return this.#unit.end - maxChars
    const word = this.#endOfWord(this.#ink(fresh))
    return (word - fresh <= maxChars ? word : fresh + pointLength(this.#text, fresh)) - maxChars
  }
}

/**
 * A last chunk below minChars takes sentences from the one before it; merging the two would exceed maxChars, as the
 * window before reached the end otherwise.
 */
function evenTail(text: string, spans: Span[], breaks: Breaks, last: number, options: ChunkOptions): Span[] {
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

/** Index of the first break at or after an offset. */
function firstBreak({ at, count }: Breaks, offset: number): number {
  let low = 0
  let high = count
  while (low < high) {
    const middle = (low + high) >> 1
    if (at[middle]! < offset) low = middle + 1
    else high = middle
  }
  return low
}

/** Beginning of the first line that is not blank. */
function beginningOf(text: string): number {
  let at = skipSpace(text, 0)
  while (at > 0 && !isLineStart(text, at)) at--
  return at
}

/** Where a word may be cut if it must be: after punctuation, and between characters of scripts without spaces. */
function isBreakAfter(unit: number): boolean {
  if (unit >= 0x80) return unit >= 0x2e80 && (unit < 0xac00 || unit > 0xdfff)
  return (
    unit > 32 && !(unit >= 48 && unit <= 57) && !(unit >= 65 && unit <= 90) && !(unit >= 97 && unit <= 122)
  )
}

type Forward = (from: number) => number

/** A search for the first offset from `from` on, remembered while later questions have the same answer. */
function forward(find: Forward): Forward {
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

type Backward = (from: number, to: number) => number

/** A search for the last offset in [from, to], -1 for none, that looks at each offset once if both only grow. */
function backward(find: Backward): Backward {
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
