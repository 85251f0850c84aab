import { type Match, matchesIn, type Span } from './matches.ts'
import { type Piece, splitPieces } from './pieces.ts'

/** A line of an excerpt, and the matched words in it. */
export interface ExcerptLine {
  readonly text: string
  readonly marks: readonly Span[]
  /** Offset in the passage. */
  readonly start: number
}

export interface ExcerptSize {
  /** Maximum number of columns per line. */
  readonly width: number
  /** Maximum number of lines. */
  readonly lines: number
}

const ellipsis = '…'
/** The excerpt starts at the sentence of the first match if the match is at most this many words into it. */
const sentenceWordsMax = 12
/**
 * The excerpt starts at the table row, list item or line of code of the first match if the match is at most this many
 * words into it.
 */
const lineWordsMax = 24
/** Number of words before the first match to show if its sentence and line start further away. */
const leadingWords = 5
/** Share of the excerpt in which matches are counted; the rest is for the text before them. */
const matchShare = 0.75

/** A passage that is split into lines. */
interface SplitPassage {
  readonly text: string
  readonly pieces: readonly Piece[]
  readonly matches: readonly Match[]
  /** Pieces that must start a line. */
  readonly lineStarts: ReadonlySet<Piece>
}

/**
 * Returns the part of a passage where matched words are closest together, split into lines between words.
 *
 * @param text        text without control characters
 * @param lineStarts  offsets at which a new line must start, ascending
 */
export function excerpt(
  text: string,
  stems: ReadonlySet<string>,
  size: ExcerptSize,
  lineStarts: readonly number[] = [],
): ExcerptLine[] {
  const pieces = splitPieces(text)
  const matches = matchesIn(text, stems)
  const source = { text, pieces, matches, lineStarts: lineStartPieces(pieces, lineStarts) }
  const allLines = wrapPieces(source, 0, pieces.length, size.width)
  if (allLines.length <= size.lines) return allLines
  return fillLines(source, size, excerptStart(source, bestStart(source, size)))
}

function lineStartPieces(pieces: readonly Piece[], lineStarts: readonly number[]): ReadonlySet<Piece> {
  const starting = new Set<Piece>()
  let at = 0
  for (const offset of lineStarts) {
    while (at < pieces.length && pieces[at]!.start < offset) at++
    if (at < pieces.length) starting.add(pieces[at]!)
  }
  return starting
}

/** Returns the lines that start with a piece. Adds earlier pieces if lines remain empty at the end of the text. */
function fillLines(source: SplitPassage, size: ExcerptSize, from: number): ExcerptLine[] {
  const { pieces } = source
  let until = from
  let lines: ExcerptLine[] = []
  for (let end = from + 1; end <= pieces.length; end++) {
    const next = wrapPieces(source, from, end, size.width)
    if (next.length > size.lines && lines.length > 0) break
    lines = next
    until = end
  }
  for (let start = from - 1; until === pieces.length && start >= 0; start--) {
    const next = wrapPieces(source, start, until, size.width)
    if (next.length > size.lines) break
    lines = next
  }
  return lines
}

/** Returns the start of the window with the most distinct matched words, and among those, the most matches. */
function bestStart({ pieces, matches, lineStarts }: SplitPassage, { width, lines }: ExcerptSize): number {
  const windowed = pieces.map(piece => ({
    cells: piece.width + 1,
    startsLine: lineStarts.has(piece),
    matches: matches.filter(match => match.start < piece.end && match.end > piece.start),
  }))
  let best = { from: 0, score: 0 }
  for (const [from, piece] of windowed.entries()) {
    if (piece.matches.length === 0) continue
    const score = scoreWindow(windowed, from, { width, cells: width * lines * matchShare })
    if (score > best.score) best = { from, score }
  }
  return best.from
}

interface WindowedPiece {
  readonly cells: number
  readonly startsLine: boolean
  readonly matches: readonly Match[]
}

function scoreWindow(
  pieces: readonly WindowedPiece[],
  from: number,
  { width, cells }: { width: number; cells: number },
): number {
  const stems = new Set<string>()
  let matchCount = 0
  let usedCells = 0
  for (let at = from; at < pieces.length; at++) {
    const piece = pieces[at]!
    if (piece.startsLine) usedCells = Math.ceil(usedCells / width) * width
    usedCells += piece.cells
    if (usedCells > cells) break
    matchCount += piece.matches.length
    for (const match of piece.matches) stems.add(match.stem)
  }
  return stems.size * 100 + matchCount
}

/**
 * Returns the index of the first piece of an excerpt: the start of the line or sentence of the match, or a few words
 * before the match.
 */
function excerptStart({ text, pieces, lineStarts }: SplitPassage, from: number): number {
  for (let start = from; start >= Math.max(0, from - lineWordsMax); start--) {
    if (lineStarts.has(pieces[start]!)) return start
    if (start > 0 && from - start > sentenceWordsMax) continue
    if (start === 0 || /[.!?]$/.test(text.slice(pieces[start - 1]!.start, pieces[start - 1]!.end)))
      return start
  }
  return Math.max(0, from - leadingWords)
}

/** Splits pieces into lines. A piece wider than a line is not cut. */
function wrapPieces(
  { text, pieces, matches, lineStarts }: SplitPassage,
  from: number,
  until: number,
  width: number,
): ExcerptLine[] {
  const isCutAfter = until < pieces.length
  const isCutBefore = from > 0 && !lineStarts.has(pieces[from]!)
  const lines: ExcerptLine[] = []
  let line = new Line(isCutBefore ? `${ellipsis} ` : '')
  for (let at = from; at < until; at++) {
    const piece = pieces[at]!
    const last = isCutAfter && at === until - 1
    if ((at > from && lineStarts.has(piece)) || !line.fits(piece, last ? width - 2 : width)) {
      lines.push(line.toExcerptLine())
      line = new Line('')
    }
    line.add(text, piece, matches)
  }
  if (isCutAfter) line.end(` ${ellipsis}`)
  lines.push(line.toExcerptLine())
  return lines
}

/** Builds a line of an excerpt from pieces. */
class Line {
  #text: string
  #cells: number
  #marks: Span[] = []
  #start: number | undefined

  constructor(start: string) {
    this.#text = start
    this.#cells = start.length
  }

  fits(piece: Piece, width: number): boolean {
    return this.#start === undefined || this.#cells + (piece.followsSpace ? 1 : 0) + piece.width <= width
  }

  add(text: string, piece: Piece, matches: readonly Match[]): void {
    if (this.#start !== undefined && piece.followsSpace) {
      this.#text += ' '
      this.#cells++
    }
    const shift = this.#text.length - piece.start
    for (const { start, end } of matches)
      if (start < piece.end && end > piece.start)
        this.#marks.push({
          start: Math.max(start, piece.start) + shift,
          end: Math.min(end, piece.end) + shift,
        })
    this.#text += text.slice(piece.start, piece.end)
    this.#cells += piece.width
    this.#start ??= piece.start
  }

  end(mark: string): void {
    this.#text += mark
  }

  toExcerptLine(): ExcerptLine {
    return { text: this.#text, marks: this.#marks, start: this.#start ?? 0 }
  }
}

/** Returns a line with `mark` applied to each matched word. */
export function highlightMatches(
  { text, marks }: Omit<ExcerptLine, 'start'>,
  mark: (word: string) => string,
): string {
  let result = ''
  let at = 0
  for (const { start, end } of marks) {
    result += text.slice(at, start) + mark(text.slice(start, end))
    at = end
  }
  return result + text.slice(at)
}
