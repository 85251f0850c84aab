import { type Match, matchesIn, type TextRange } from './matches.ts'
import { type Piece, splitPieces } from './pieces.ts'

/** A line of an excerpt, and the matched words in it. */
export interface ExcerptLine {
  readonly text: string
  readonly marks: readonly TextRange[]
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
/** Maximum number of words before the first match for an excerpt that starts with the sentence of the match. */
const sentenceWordsMax = 12
/** Like {@link sentenceWordsMax}, for an excerpt that starts with a table row, a list item or a line of code. */
const lineWordsMax = 24
/** Number of words before the first match in other excerpts. */
const leadingWords = 5
/** Share of the excerpt in which matches are counted. The rest is reserved for the text before the first match. */
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
  const passage = { text, pieces, matches, lineStarts: lineStartPieces(pieces, lineStarts) }
  const allLines = wrapPieces(passage, 0, pieces.length, size.width)
  if (allLines.length <= size.lines) return allLines
  return fillLines(passage, size, excerptStart(passage, size, findBestWindow(passage, size)))
}

function lineStartPieces(pieces: readonly Piece[], lineStarts: readonly number[]): ReadonlySet<Piece> {
  const startPieces = new Set<Piece>()
  let index = 0
  for (const offset of lineStarts) {
    while (index < pieces.length && pieces[index]!.start < offset) index++
    if (index < pieces.length) startPieces.add(pieces[index]!)
  }
  return startPieces
}

/** Returns lines from a piece onward. If the text ends before all lines are full, also adds earlier pieces. */
function fillLines(passage: SplitPassage, size: ExcerptSize, firstIndex: number): ExcerptLine[] {
  const { pieces } = passage
  let endIndex = firstIndex
  let lines: ExcerptLine[] = []
  for (let end = firstIndex + 1; end <= pieces.length; end++) {
    const candidate = wrapPieces(passage, firstIndex, end, size.width)
    if (candidate.length > size.lines && lines.length > 0) break
    lines = candidate
    endIndex = end
  }
  for (let start = firstIndex - 1; endIndex === pieces.length && start >= 0; start--) {
    const candidate = wrapPieces(passage, start, endIndex, size.width)
    if (candidate.length > size.lines) break
    lines = candidate
  }
  return lines
}

/** Returns the first piece of the window with the most distinct matched words. Among equals, the most matches win. */
function findBestWindow(
  { pieces, matches, lineStarts }: SplitPassage,
  { width, lines }: ExcerptSize,
): number {
  const windowedPieces = pieces.map(piece => ({
    cells: piece.width + 1,
    startsLine: lineStarts.has(piece),
    matches: matches.filter(match => match.start < piece.end && match.end > piece.start),
  }))
  let best = { index: 0, score: 0 }
  for (const [startIndex, piece] of windowedPieces.entries()) {
    if (piece.matches.length === 0) continue
    const score = scoreWindow(windowedPieces, startIndex, { width, cells: width * lines * matchShare })
    if (score > best.score) best = { index: startIndex, score }
  }
  return best.index
}

interface WindowedPiece {
  readonly cells: number
  readonly startsLine: boolean
  readonly matches: readonly Match[]
}

function scoreWindow(
  pieces: readonly WindowedPiece[],
  startIndex: number,
  { width, cells }: { width: number; cells: number },
): number {
  const stems = new Set<string>()
  let matchCount = 0
  let usedCells = 0
  for (let at = startIndex; at < pieces.length; at++) {
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
 * before the match. The match is before the last line of the excerpt.
 */
function excerptStart(passage: SplitPassage, { width, lines }: ExcerptSize, matchIndex: number): number {
  const { text, pieces, lineStarts } = passage
  const showsMatch = (start: number) =>
    wrapPieces(passage, start, matchIndex + 1, width).length <= Math.max(1, lines - 1)
  const earliest = Math.max(0, matchIndex - lineWordsMax)
  for (let start = matchIndex; start >= earliest && showsMatch(start); start--) {
    if (lineStarts.has(pieces[start]!)) return start
    if (start > 0 && matchIndex - start > sentenceWordsMax) continue
    if (start === 0 || /[.!?]$/.test(text.slice(pieces[start - 1]!.start, pieces[start - 1]!.end)))
      return start
  }
  let start = matchIndex
  while (start > Math.max(0, matchIndex - leadingWords) && showsMatch(start - 1)) start--
  return start
}

/** Splits pieces into lines. A piece wider than a line is not cut. */
function wrapPieces(
  { text, pieces, matches, lineStarts }: SplitPassage,
  start: number,
  end: number,
  width: number,
): ExcerptLine[] {
  const isCutAfter = end < pieces.length
  const isCutBefore = start > 0 && !lineStarts.has(pieces[start]!)
  const lines: ExcerptLine[] = []
  let line = new Line(isCutBefore ? `${ellipsis} ` : '')
  for (let at = start; at < end; at++) {
    const piece = pieces[at]!
    const isLast = isCutAfter && at === end - 1
    if ((at > start && lineStarts.has(piece)) || !line.fits(piece, isLast ? width - 2 : width)) {
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
  #marks: TextRange[] = []
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

  end(ending: string): void {
    this.#text += ending
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
