import { Box } from 'ink'
import { displayWidth, truncate } from '../../cli/terminal/terminal-text.ts'
import type { Editor } from './editor.ts'
import { layoutEditor } from './editor-layout.ts'
import { Rows } from './rows.tsx'
import { type Line, span } from './spans.ts'

export interface FieldOptions {
  readonly columns: number
  readonly isFramed: boolean
  /** Shown in the frame, or before the text if there is no frame; can be empty. */
  readonly title: string
  /** Shown while the field is empty. */
  readonly placeholder: string
  /** Maximum number of lines of text. */
  readonly linesMax: number
}

/** Layout of a text field: the lines for `<TextField>`, and the position of the cursor. */
export interface FieldLayout {
  readonly lines: readonly Line[]
  readonly isFramed: boolean
  readonly columns: number
  readonly title: string
  /** Number of rows, including the frame. */
  readonly height: number
  /** Position of the cursor, from the top left of the field. */
  readonly cursor: { readonly x: number; readonly y: number }
}

/** Lays out a field so that its cursor is visible. */
export function layoutField(editor: Editor, options: FieldOptions): FieldLayout {
  const { columns, isFramed, title, placeholder, linesMax } = options
  const titlePrefix = `${title}: `
  const prefix = isFramed ? '' : title !== '' && displayWidth(titlePrefix) < columns / 2 ? titlePrefix : '> '
  const width = Math.max(1, columns - (isFramed ? 4 : prefix.length))
  const { lines, x, y } = layoutEditor(editor, width)
  const top = Math.max(0, Math.min(y - linesMax + 1, lines.length - linesMax))
  const visibleLines =
    editor.text === '' ? [[span(truncate(placeholder, width), 'dim')]] : lines.slice(top, top + linesMax)
  const prefixedLines = visibleLines.map((line, index): Line => {
    if (isFramed) return line
    return [span(index === 0 ? prefix : ' '.repeat(prefix.length), 'accent'), ...line]
  })
  const frameRows = isFramed ? 2 : 0
  return {
    lines: prefixedLines,
    isFramed,
    columns,
    title,
    height: prefixedLines.length + frameRows,
    cursor: { x: Math.min(x + (isFramed ? 2 : prefix.length), columns - 1), y: y - top + frameRows / 2 },
  }
}

/** A text field, with a frame if the layout has one. */
export function TextField({ field }: { field: FieldLayout }) {
  const { lines, isFramed, columns, title } = field
  if (!isFramed) return <Rows lines={lines} />
  return (
    <>
      {title !== '' && <Rows lines={[frameTop(title, columns)]} />}
      <Box
        flexDirection="column"
        width={columns}
        borderStyle="round"
        borderTop={title === ''}
        borderDimColor
        paddingX={1}
      >
        <Rows lines={lines} />
      </Box>
    </>
  )
}

/** Returns the top of a frame with a title, because Ink borders cannot have titles. */
function frameTop(title: string, columns: number): Line {
  const shownTitle = ` ${truncate(title, Math.max(0, columns - 6))} `
  const rule = '─'.repeat(Math.max(0, columns - 3 - displayWidth(shownTitle)))
  return [span('╭─', 'dim'), span(shownTitle, 'accent'), span(`${rule}╮`, 'dim')]
}
