import { cells } from '../parts/cells.ts'
import { edited } from '../parts/editing.ts'
import { type Editor, insert } from '../parts/editor.ts'
import type { Key } from '../parts/keys.ts'
import { laidOut } from '../parts/laid-out.ts'
import { type Line, lineWidth, span } from '../parts/spans.ts'

/** Longer pastes are cut. */
const pastedMax = 10_000
/** Screens that are narrower, or lower, have no frame around the field. */
const framedColumns = 24
const framedRows = 14

/** What a key makes of a field of one line; undefined where it is none for it. */
export function editedLine(editor: Editor, key: Key): Editor | undefined {
  if (key.type === 'pasted') return insert(editor, oneLine(key.text.slice(0, pastedMax)))
  return edited(editor, key)
}

/** A text without its breaks, each a blank. */
export function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ')
}

/** Lines of a field, and where its cursor is in them. */
export interface Field {
  readonly lines: readonly Line[]
  readonly cursor: { readonly x: number; readonly y: number }
}

export interface FieldLook {
  readonly columns: number
  readonly rows: number
  /** Stands in the frame, or before the field where there is none. */
  readonly title: string
  /** Stands in a field that is empty. */
  readonly hint: string
  readonly linesMax: number
}

/** A field as it is shown: in a frame where there is room for one. */
export function fieldOf(editor: Editor, { columns, rows, title, hint, linesMax }: FieldLook): Field {
  const isFramed = columns >= framedColumns && rows >= framedRows
  const mark = isFramed ? '' : title === '' ? '> ' : `${title}: `
  const width = Math.max(1, columns - (isFramed ? 4 : cells(mark)))
  const { lines, x, y } = laidOut(editor, width)
  const top = Math.max(0, y - linesMax + 1)
  const seen = editor.text === '' ? [[span(hint.slice(0, width), 'dim')]] : lines.slice(top, top + linesMax)
  if (!isFramed)
    return {
      lines: seen.map(
        (line, at): Line => [span(at === 0 ? mark : ' '.repeat(cells(mark)), 'accent'), ...line],
      ),
      cursor: { x: x + cells(mark), y: y - top },
    }
  return { lines: framed(seen, title, columns), cursor: { x: x + 2, y: y - top + 1 } }
}

function framed(lines: readonly Line[], title: string, columns: number): Line[] {
  const named = title === '' ? '' : ` ${title} `
  const side = span('│', 'dim')
  const filler = (line: Line) => span(' '.repeat(Math.max(0, columns - 3 - lineWidth(line))))
  return [
    [
      span('╭─', 'dim'),
      span(named, 'accent'),
      span(`${'─'.repeat(Math.max(0, columns - 3 - cells(named)))}╮`, 'dim'),
    ],
    ...lines.map((line): Line => [side, span(' '), ...line, filler(line), side]),
    [span(`╰${'─'.repeat(columns - 2)}╯`, 'dim')],
  ]
}
