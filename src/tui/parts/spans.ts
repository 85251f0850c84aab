import { displayWidth, truncate } from '../../cli/terminal/terminal-text.ts'
import { fittingPrefix, graphemes } from './graphemes.ts'

/** Meaning of a piece of text. `paintFor` maps it to a style. */
export type Tone =
  | 'dim'
  | 'strong'
  | 'em'
  | 'struck'
  | 'code'
  | 'link'
  | 'heading'
  | 'cite'
  | 'good'
  | 'bad'
  | 'warning'
  | 'accent'
  | 'keyword'
  | 'string'
  | 'number'
  | 'name'
  | 'inverse'

export interface StyledSpan {
  readonly text: string
  readonly tones: readonly Tone[]
}

/** One row of a terminal. */
export type Line = readonly StyledSpan[]

export function span(text: string, ...tones: Tone[]): StyledSpan {
  return { text, tones }
}

/** Returns the width of a line in cells. */
export function lineWidth(line: Line): number {
  return line.reduce((sum, { text }) => sum + displayWidth(text), 0)
}

/** The smallest part of a text. Lines break only between atoms, unless an atom is wider than a line. */
interface Atom {
  readonly text: string
  readonly tones: readonly Tone[]
  readonly width: number
  readonly kind: 'word' | 'blank' | 'break'
  /** True if a line can break before this atom even without a space. */
  readonly breakable: boolean
}

export interface Indents {
  /** Prefix of the first line. */
  readonly first?: Line
  /** Prefix of the other lines. */
  readonly rest?: Line
}

/** Matches characters of scripts that do not separate words with spaces. */
const unspacedScripts =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u

/**
 * Wraps text between words. Breaks a word that is wider than a line, and starts a new line at a newline. Unlike
 * `wrap-ansi`, indents lines, and can break text in scripts without spaces between any two characters.
 */
export function wrap(spans: Line, width: number, { first = [], rest = [] }: Indents = {}): Line[] {
  const availableWidth = Math.max(1, width - Math.max(lineWidth(first), lineWidth(rest)))
  const lines = breakLines(spans.flatMap(atomsOf), availableWidth)
  return lines.map((line, index) => [...(index === 0 ? first : rest), ...joinSpans(line)])
}

/** Returns the width of the widest word. In narrower lines, {@link wrap} breaks this word. */
export function widestWord(line: Line): number {
  let widest = 0
  let word = 0
  for (const { kind, width, breakable } of line.flatMap(atomsOf)) {
    word = kind === 'word' && !breakable ? word + width : 0
    widest = Math.max(widest, word)
  }
  return widest
}

function* splitAtSpaces(text: string): Generator<string> {
  for (const [piece] of text.matchAll(/\n|[^\S\n]+|\S+/g)) yield piece
}

function atomsOf({ text, tones }: StyledSpan): Atom[] {
  return [...splitAtSpaces(text)].flatMap((piece): Atom[] => {
    if (piece === '\n') return [{ text: '', tones, width: 0, kind: 'break', breakable: false }]
    if (/^\s/.test(piece)) return [{ text: ' ', tones, width: 1, kind: 'blank', breakable: false }]
    if (!unspacedScripts.test(piece))
      return [{ text: piece, tones, width: displayWidth(piece), kind: 'word', breakable: false }]
    return graphemes(piece).map(text => ({
      text,
      tones,
      width: displayWidth(text),
      kind: 'word',
      breakable: unspacedScripts.test(text),
    }))
  })
}

function breakLines(atoms: readonly Atom[], availableWidth: number): StyledSpan[][] {
  const lines: StyledSpan[][] = []
  let line: StyledSpan[] = []
  let column = 0
  const endLine = () => {
    lines.push(line)
    line = []
    column = 0
  }
  for (const run of runsOf(atoms)) {
    if (run.kind === 'break') {
      endLine()
      continue
    }
    const blank = column > 0 && run.blank ? 1 : 0
    if (column > 0 && column + blank + run.width > availableWidth) endLine()
    else if (blank) {
      line.push({ text: ' ', tones: run.blank!.tones })
      column += 1
    }
    for (const atom of run.atoms) {
      let { text } = atom
      let { width } = atom
      while (column + width > availableWidth) {
        const head = fittingPrefix(text, availableWidth - column)
        if (column > 0 && column + displayWidth(head) > availableWidth) {
          endLine()
          continue
        }
        line.push({ text: head, tones: atom.tones })
        text = text.slice(head.length)
        width = displayWidth(text)
        endLine()
        if (text === '') break
      }
      if (text !== '') line.push({ text, tones: atom.tones })
      column += width
    }
  }
  if (line.length > 0 || lines.length === 0) lines.push(line)
  return lines
}

/** Adjacent atoms without a space between them, and the space before them. */
interface WordRun {
  readonly kind: 'words' | 'break'
  readonly blank: Atom | undefined
  readonly atoms: Atom[]
  width: number
}

function runsOf(atoms: readonly Atom[]): WordRun[] {
  const runs: WordRun[] = []
  let currentRun: WordRun | undefined
  let blank: Atom | undefined
  for (const atom of atoms) {
    if (atom.kind === 'blank') {
      blank = atom
      currentRun = undefined
    } else if (atom.kind === 'break') {
      runs.push({ kind: 'break', blank: undefined, atoms: [], width: 0 })
      currentRun = undefined
      blank = undefined
    } else {
      if (!currentRun || atom.breakable) {
        currentRun = { kind: 'words', blank, atoms: [], width: 0 }
        runs.push(currentRun)
        blank = undefined
      }
      currentRun.atoms.push(atom)
      currentRun.width += atom.width
    }
  }
  return runs
}

/** Joins adjacent spans that have the same tones. */
export function joinSpans(line: readonly StyledSpan[]): StyledSpan[] {
  const spans: StyledSpan[] = []
  for (const next of line) {
    const last = spans.at(-1)
    if (last && last.tones.join() === next.tones.join())
      spans[spans.length - 1] = { text: last.text + next.text, tones: last.tones }
    else spans.push(next)
  }
  return spans
}

/**
 * Wraps a line of code, and keeps all spaces. Breaks it between words if at least half of a row is filled, otherwise
 * between any two characters.
 */
export function wrapExact(line: Line, width: number, indent: Line = []): Line[] {
  const availableWidth = Math.max(1, width - lineWidth(indent))
  const lines: StyledSpan[][] = [[]]
  let column = 0
  const startRow = () => {
    lines.push([])
    column = 0
  }
  for (const { text, tones } of wordsOf(line)) {
    let remaining = text
    const wordWidth = displayWidth(text)
    const isTooWide = column + wordWidth > availableWidth
    if (isTooWide && wordWidth <= availableWidth && column >= availableWidth / 2 && text.trim() !== '')
      startRow()
    while (remaining !== '') {
      if (column >= availableWidth) startRow()
      const textWidth = displayWidth(remaining)
      const head =
        textWidth <= availableWidth - column ? remaining : fittingPrefix(remaining, availableWidth - column)
      if (column > 0 && column + displayWidth(head) > availableWidth) {
        column = availableWidth
        continue
      }
      lines.at(-1)!.push({ text: head, tones })
      column += displayWidth(head)
      remaining = remaining.slice(head.length)
    }
  }
  return lines.map(spans => [...indent, ...joinSpans(spans)])
}

/** Splits spans into words and the spaces between them. */
function wordsOf(line: Line): StyledSpan[] {
  return line.flatMap(({ text, tones }) =>
    [...text.matchAll(/\s+|\S+/g)].map(([piece]) => ({ text: piece, tones })),
  )
}

/** Truncates a line to a width, with an ellipsis. */
export function cutLine(line: Line, width: number): Line {
  if (lineWidth(line) <= width) return line
  const spans: StyledSpan[] = []
  let cellsLeft = width
  for (const { text, tones } of line) {
    const textWidth = displayWidth(text)
    if (textWidth < cellsLeft) {
      spans.push({ text, tones })
      cellsLeft -= textWidth
      continue
    }
    // The space makes a text that would fit too wide, because the rest of the line follows it.
    spans.push({ text: truncate(`${text} `, cellsLeft), tones })
    break
  }
  return spans
}
