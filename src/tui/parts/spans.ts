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

/** The smallest part of a text that line breaks keep together. */
interface Atom {
  readonly text: string
  readonly tones: readonly Tone[]
  readonly width: number
  readonly kind: 'word' | 'blank' | 'break'
  /** True if a line can break before it without a space. */
  readonly breakable: boolean
}

export interface Indents {
  /** Prefix of the first line. */
  readonly first?: Line
  /** Prefix of the other lines. */
  readonly rest?: Line
}

/** Matches scripts that do not separate words by spaces. */
const unspaced =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u

/**
 * Wraps text between words. Breaks a word that is wider than a line, and ends a line at a newline. Unlike
 * `wrap-ansi`, it indents lines, and breaks scripts without spaces between any two characters.
 */
export function wrap(spans: Line, width: number, { first = [], rest = [] }: Indents = {}): Line[] {
  const room = Math.max(1, width - Math.max(lineWidth(first), lineWidth(rest)))
  const lines = breakLines(spans.flatMap(atomsOf), room)
  return lines.map((line, at) => [...(at === 0 ? first : rest), ...joinSpans(line)])
}

/** Returns the width of the widest word. In narrower lines, {@link wrap} breaks it. */
export function widestWord(line: Line): number {
  let widest = 0
  let word = 0
  for (const { kind, width, breakable } of line.flatMap(atomsOf)) {
    word = kind === 'word' && !breakable ? word + width : 0
    widest = Math.max(widest, word)
  }
  return widest
}

function* pieces(text: string): Generator<string> {
  for (const [piece] of text.matchAll(/\n|[^\S\n]+|\S+/g)) yield piece
}

function atomsOf({ text, tones }: StyledSpan): Atom[] {
  return [...pieces(text)].flatMap((piece): Atom[] => {
    if (piece === '\n') return [{ text: '', tones, width: 0, kind: 'break', breakable: false }]
    if (/^\s/.test(piece)) return [{ text: ' ', tones, width: 1, kind: 'blank', breakable: false }]
    if (!unspaced.test(piece))
      return [{ text: piece, tones, width: displayWidth(piece), kind: 'word', breakable: false }]
    return graphemes(piece).map(text => ({
      text,
      tones,
      width: displayWidth(text),
      kind: 'word',
      breakable: unspaced.test(text),
    }))
  })
}

function breakLines(atoms: readonly Atom[], room: number): StyledSpan[][] {
  const lines: StyledSpan[][] = []
  let line: StyledSpan[] = []
  let used = 0
  const end = () => {
    lines.push(line)
    line = []
    used = 0
  }
  for (const run of runsOf(atoms)) {
    if (run.kind === 'break') {
      end()
      continue
    }
    const blank = used > 0 && run.blank ? 1 : 0
    if (used > 0 && used + blank + run.width > room) end()
    else if (blank) {
      line.push({ text: ' ', tones: run.blank!.tones })
      used += 1
    }
    for (const atom of run.atoms) {
      let { text } = atom
      let { width } = atom
      while (used + width > room) {
        const head = fittingPrefix(text, room - used)
        if (used > 0 && used + displayWidth(head) > room) {
          end()
          continue
        }
        line.push({ text: head, tones: atom.tones })
        text = text.slice(head.length)
        width = displayWidth(text)
        end()
        if (text === '') break
      }
      if (text !== '') line.push({ text, tones: atom.tones })
      used += width
    }
  }
  if (line.length > 0 || lines.length === 0) lines.push(line)
  return lines
}

/** Adjacent words without a space between them, and the space before them. */
interface WordRun {
  readonly kind: 'words' | 'break'
  readonly blank: Atom | undefined
  readonly atoms: Atom[]
  width: number
}

function runsOf(atoms: readonly Atom[]): WordRun[] {
  const runs: WordRun[] = []
  let open: WordRun | undefined
  let blank: Atom | undefined
  for (const atom of atoms) {
    if (atom.kind === 'blank') {
      blank = atom
      open = undefined
    } else if (atom.kind === 'break') {
      runs.push({ kind: 'break', blank: undefined, atoms: [], width: 0 })
      open = undefined
      blank = undefined
    } else {
      if (!open || atom.breakable) {
        open = { kind: 'words', blank, atoms: [], width: 0 }
        runs.push(open)
        blank = undefined
      }
      open.atoms.push(atom)
      open.width += atom.width
    }
  }
  return runs
}

/** Joins adjacent spans that have the same tones. */
function joinSpans(line: readonly StyledSpan[]): StyledSpan[] {
  const spans: StyledSpan[] = []
  for (const next of line) {
    const last = spans.at(-1)
    if (last && last.tones.join() === next.tones.join())
      spans[spans.length - 1] = { text: last.text + next.text, tones: last.tones }
    else spans.push(next)
  }
  return spans
}

/** Wraps a line of code, and keeps all its spaces. */
export function wrapExact(line: Line, width: number, indent: Line = []): Line[] {
  const room = Math.max(1, width - lineWidth(indent))
  const lines: StyledSpan[][] = [[]]
  let used = 0
  for (const { text, tones } of line) {
    let remaining = text
    while (remaining !== '') {
      if (used >= room) {
        lines.push([])
        used = 0
      }
      const wide = displayWidth(remaining)
      const head = wide <= room - used ? remaining : fittingPrefix(remaining, room - used)
      if (used > 0 && used + displayWidth(head) > room) {
        used = room
        continue
      }
      lines.at(-1)!.push({ text: head, tones })
      used += displayWidth(head)
      remaining = remaining.slice(head.length)
    }
  }
  return lines.map(spans => [...indent, ...spans])
}

/** Truncates a line to a width, with an ellipsis. */
export function cutLine(line: Line, width: number): Line {
  if (lineWidth(line) <= width) return line
  const kept: StyledSpan[] = []
  let cellsLeft = width
  for (const { text, tones } of line) {
    const wide = displayWidth(text)
    if (wide < cellsLeft) {
      kept.push({ text, tones })
      cellsLeft -= wide
      continue
    }
    kept.push({
      text: wide === cellsLeft ? `${fittingPrefix(text, cellsLeft - 1)}…` : truncate(text, cellsLeft),
      tones,
    })
    break
  }
  return kept
}
