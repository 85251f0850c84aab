import { type Match, matchesIn, type Span } from './matches.ts'
import { type Piece, piecesOf } from './pieces.ts'

/** A line of an excerpt, and the matched words in it. */
export interface ExcerptLine {
  readonly text: string
  readonly marks: readonly Span[]
  /** Where in the passage it begins. */
  readonly start: number
}

export interface Room {
  /** Cells of a line. */
  readonly width: number
  readonly lines: number
}

const ellipsis = '…'
/** Words shown before the first match: back to where its sentence begins, if that is no further than this. */
const sentencePieces = 12
/** The same where the sentence begins further off. */
const leadPieces = 5
/** Share of the room that matches are looked for in; the rest is for what leads to them. */
const matchShare = 0.75

/**
 * The part of a passage where the words of the question stand closest, cut between words only, in lines.
 *
 * @param text  without control characters
 */
export function excerpt(text: string, stems: ReadonlySet<string>, room: Room): ExcerptLine[] {
  const pieces = piecesOf(text)
  const matches = matchesIn(text, stems)
  const cells = room.width * room.lines * matchShare
  const whole = wrapped(text, pieces, matches, room.width, { cutBefore: false, cutAfter: false })
  if (whole.length <= room.lines) return whole
  const from = leadIn(text, pieces, bestStart(pieces, matches, cells))
  return filled(text, pieces, matches, room, from)
}

/** Lines from a piece on, as many as there is room for; earlier pieces are taken along when the end leaves room. */
function filled(text: string, pieces: readonly Piece[], matches: readonly Match[], room: Room, from: number) {
  let until = from
  let lines: ExcerptLine[] = []
  const tried = (start: number, end: number) =>
    wrapped(text, pieces.slice(start, end), matches, room.width, {
      cutBefore: start > 0,
      cutAfter: end < pieces.length,
    })
  for (let end = from + 1; end <= pieces.length; end++) {
    const next = tried(from, end)
    if (next.length > room.lines && lines.length > 0) break
    lines = next
    until = end
  }
  for (let start = from - 1; until === pieces.length && start >= 0; start--) {
    const next = tried(start, until)
    if (next.length > room.lines) break
    lines = next
  }
  return lines
}

/** Where a window of so many cells begins that holds most different words of the question, then most words of it. */
function bestStart(pieces: readonly Piece[], matches: readonly Match[], cells: number): number {
  const inPiece = pieces.map(piece =>
    matches.filter(match => match.start < piece.end && match.end > piece.start),
  )
  let best = { from: 0, worth: 0 }
  for (let from = 0; from < pieces.length; from++) {
    if (inPiece[from]!.length === 0) continue
    const worth = worthFrom(pieces, inPiece, from, cells)
    if (worth > best.worth) best = { from, worth }
  }
  return best.from
}

function worthFrom(
  pieces: readonly Piece[],
  inPiece: readonly Match[][],
  from: number,
  cells: number,
): number {
  const different = new Set<string>()
  let all = 0
  let used = 0
  for (let at = from; at < pieces.length; at++) {
    used += pieces[at]!.width + 1
    if (used > cells) break
    all += inPiece[at]!.length
    for (const match of inPiece[at]!) different.add(match.stem)
  }
  return different.size * 100 + all
}

function leadIn(text: string, pieces: readonly Piece[], from: number): number {
  for (let start = from; start >= Math.max(0, from - sentencePieces); start--)
    if (start === 0 || /[.!?]$/.test(text.slice(pieces[start - 1]!.start, pieces[start - 1]!.end)))
      return start
  return from - leadPieces
}

/** Pieces in lines, filled greedily. A piece that is wider than a line stands alone and whole. */
function wrapped(
  text: string,
  pieces: readonly Piece[],
  matches: readonly Match[],
  width: number,
  { cutBefore, cutAfter }: { cutBefore: boolean; cutAfter: boolean },
): ExcerptLine[] {
  const lines: ExcerptLine[] = []
  let line = new Line(cutBefore ? `${ellipsis} ` : '')
  for (const [index, piece] of pieces.entries()) {
    const last = cutAfter && index === pieces.length - 1
    if (!line.fits(piece, last ? width - 2 : width)) {
      lines.push(line.finished())
      line = new Line('')
    }
    line.add(text, piece, matches)
  }
  if (cutAfter) line.end(` ${ellipsis}`)
  lines.push(line.finished())
  return lines
}

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
    return this.#start === undefined || this.#cells + (piece.spaced ? 1 : 0) + piece.width <= width
  }

  add(text: string, piece: Piece, matches: readonly Match[]): void {
    if (this.#start !== undefined && piece.spaced) {
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

  finished(): ExcerptLine {
    return { text: this.#text, marks: this.#marks, start: this.#start ?? 0 }
  }
}

/** A line with each of its marked words put through `mark`. */
export function marked({ text, marks }: Omit<ExcerptLine, 'start'>, mark: (word: string) => string): string {
  let shown = ''
  let at = 0
  for (const { start, end } of marks) {
    shown += text.slice(at, start) + mark(text.slice(start, end))
    at = end
  }
  return shown + text.slice(at)
}
