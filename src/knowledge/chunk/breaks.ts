import { isLineStart, isSpace, skipSpace } from './space.ts'

/** Quality of a place for a cut; higher is better. */
export const breakStrength = { sentence: 1, item: 2, paragraph: 3, heading: 4 } as const

/** Places in a text where a sentence or something greater begins, ascending. */
export interface TextBreaks {
  readonly count: number
  /** Offsets; the first `count` are filled. */
  readonly at: Int32Array
  /** Values of `breakStrength`, for each offset. */
  readonly strength: Uint8Array
}

/**
 * Finds the beginnings of sentences, list items, paragraphs and sections.
 *
 * A break after a line end is at the beginning of its line, indentation included. There is no break after a
 * heading, so that a heading stays with its text. In fenced code, only blank lines are breaks. Makes one pass
 * over the character codes, because `Intl.Segmenter` takes more than linear time (Node 20: three minutes for
 * 2,000,000 characters; this takes 30 ms).
 */
export function findBreaks(text: string): TextBreaks {
  const found = new BreakList()
  const length = text.length
  let at = skipSpace(text, 0)
  let start = at
  let kind = lineKind(text, at, 'text')
  while (at < length) {
    const unit = text.charCodeAt(at)
    if (isSpace(unit)) {
      const end = at
      at = skipSpace(text, end)
      if (at === length) break
      const ended = hasSentences(kind) && endsSentence(text, end, at, start)
      const ends = lineEnds(text, end, at)
      if (ends.count > 0) {
        const before = kind
        kind = lineKind(text, at, before)
        start = at
        found.add(ends.last, strengthBetween(before, kind, ends.count > 1, ended))
      } else if (ended) found.add(at, breakStrength.sentence)
    } else if (isWideEnd(unit) && hasSentences(kind)) {
      do at++
      while (at < length && (isWideEnd(text.charCodeAt(at)) || isCloser(text.charCodeAt(at))))
      if (at < length && !isSpace(text.charCodeAt(at))) found.add(at, breakStrength.sentence)
    } else at++
  }
  return found
}

class BreakList implements TextBreaks {
  count = 0
  at = new Int32Array(1_024)
  strength = new Uint8Array(1_024)

  add(at: number, strength: number): void {
    if (strength === 0) return
    if (this.count === this.at.length) {
      this.at = copyInto(this.at, new Int32Array(this.count * 2))
      this.strength = copyInto(this.strength, new Uint8Array(this.count * 2))
    }
    this.at[this.count] = at
    this.strength[this.count++] = strength
  }
}

function copyInto<Numbers extends Int32Array | Uint8Array>(from: Numbers, to: Numbers): Numbers {
  to.set(from)
  return to
}

/** Kind of a line; `open` and `close` are the fences of code. */
type LineKind = 'text' | 'item' | 'heading' | 'open' | 'code' | 'close'

function lineKind(text: string, start: number, before: LineKind): LineKind {
  const fence = text.startsWith('```', start) || text.startsWith('~~~', start)
  if (before === 'open' || before === 'code') return fence ? 'close' : 'code'
  if (fence && !closesOnItsLine(text, start)) return 'open'
  if (isHeading(text, start)) return 'heading'
  return isItem(text, start) ? 'item' : 'text'
}

function hasSentences(kind: LineKind): boolean {
  return kind === 'text' || kind === 'item' || kind === 'close'
}

/** Returns the strength of the break at the beginning of a line; 0 for no break. */
function strengthBetween(before: LineKind, kind: LineKind, blank: boolean, ended: boolean): number {
  if (before === 'heading') return 0
  if (kind === 'code' || kind === 'close') return blank && kind === 'code' ? breakStrength.sentence : 0
  if (kind === 'heading') return breakStrength.heading
  if (blank) return breakStrength.paragraph
  if (kind === 'item' || before === 'close') return breakStrength.item
  return ended ? breakStrength.sentence : 0
}

/** Returns true for code in one line, as in ```` ```x``` ````, which does not open a block. */
function closesOnItsLine(text: string, start: number): boolean {
  const limit = Math.min(start + 200, text.length)
  let at = start
  while (at < limit && text.charCodeAt(at) === text.charCodeAt(start)) at++
  while (at < limit && !isLineStart(text, at + 1)) {
    if (text.charCodeAt(at) === 0x60) return true
    at++
  }
  return false
}

function isHeading(text: string, start: number): boolean {
  let at = start
  while (at < start + 7 && text.charCodeAt(at) === 0x23) at++
  return at > start && at < start + 7 && (at === text.length || isSpace(text.charCodeAt(at)))
}

function isItem(text: string, start: number): boolean {
  let at = start
  while (at < start + 9 && isDigit(text.charCodeAt(at))) at++
  const marks = at > start ? '.)' : '-*+•'
  return at < text.length && marks.includes(text.charAt(at)) && isSpace(text.charCodeAt(at + 1))
}

/** Returns the number of line ends in white space, and the offset after the last one. */
function lineEnds(text: string, from: number, to: number): { count: number; last: number } {
  let count = 0
  let last = from
  for (let at = from + 1; at <= to; at++)
    if (isLineStart(text, at)) {
      count++
      last = at
    }
  return { count, last }
}

/**
 * Abbreviations that end with a full stop, and would be taken for the end of a sentence: they have more than
 * three letters, or often precede a capital.
 */
const abbreviations = new Set(
  'mr mrs ms dr prof st vs fig figs eq eqs ref refs no nos nr vol ch sec pp cf al ca approx dept gen sen rep rev bzw vgl abb abs tab'.split(
    ' ',
  ),
)

/** Maximum number of characters to read before a full stop; no abbreviation is longer. */
const wordMax = 12

/**
 * Returns true if the text before white space ends a sentence.
 *
 * @param end   offset of the white space
 * @param next  offset of the text after it
 * @param line  offset of the beginning of the line; a number with a full stop there is a list marker
 */
function endsSentence(text: string, end: number, next: number, line: number): boolean {
  let at = end
  while (at > 0 && isCloser(text.charCodeAt(at - 1))) at--
  const unit = text.charCodeAt(at - 1)
  if (isWideEnd(unit)) return true
  if (unit === 0x2e)
    return text.charCodeAt(at - 2) === 0x2e ? !isLower(text, next) : fullStops(text, at - 1, next, line)
  if (unit === 0x2026) return !isLower(text, next)
  if (unit === 0x21 || unit === 0x3f) return at === end || !isLower(text, next)
  return isOtherEnd(unit)
}

function fullStops(text: string, stop: number, next: number, line: number): boolean {
  let start = stop
  while (start > stop - wordMax && start > line && isWordUnit(text.charCodeAt(start - 1))) start--
  const word = text.slice(start, stop)
  if (word.length === 0 || word.length >= wordMax) return true
  if (/^\p{Nd}+$/u.test(word)) return start !== line
  if (/^(?:\p{L}\.)*\p{L}$/u.test(word)) return false
  if (abbreviations.has(word.toLowerCase())) return false
  return word.length > 3 || !isLower(text, next)
}

/** Returns true for characters of a word before a full stop: not white space, opening brackets and quotes. */
function isWordUnit(unit: number): boolean {
  return !isSpace(unit) && !'([{"\'“‘«'.includes(String.fromCharCode(unit))
}

/** Returns true for quotes and brackets that can follow the end of a sentence. */
function isCloser(unit: number): boolean {
  switch (unit) {
    case 0x22: // "
    case 0x27: // '
    case 0x29: // )
    case 0x5d: // ]
    case 0x7d: // }
    case 0x2a: // *
    case 0x5f: // _
    case 0xbb: // »
    case 0x2019: // ’
    case 0x201c: // “, a closing quote in German
    case 0x201d: // ”
    case 0x300d: // 」
    case 0x300f: // 』
    case 0x3011: // 】
    case 0xff09: // ）
      return true
    default:
      return false
  }
}

/** Returns true for ends of sentences in scripts that put no space after them: 。！？｡ */
function isWideEnd(unit: number): boolean {
  return unit >= 0x3002 && (unit === 0x3002 || unit === 0xff01 || unit === 0xff1f || unit === 0xff61)
}

/** Returns true for ends of sentences in Arabic, Urdu, Devanagari, Ethiopic, Khmer, Burmese and Armenian. */
function isOtherEnd(unit: number): boolean {
  return (
    unit > 0x580 &&
    '\u061f\u06d4\u0964\u0965\u1362\u1367\u17d4\u104b\u0589'.includes(String.fromCharCode(unit))
  )
}

function isDigit(unit: number): boolean {
  return unit >= 0x30 && unit <= 0x39
}

function isLower(text: string, at: number): boolean {
  const letter = String.fromCodePoint(text.codePointAt(at) ?? 0)
  return letter === letter.toLowerCase() && letter !== letter.toUpperCase()
}
