import { displayWidth } from '../../cli/terminal/terminal-text.ts'
import { type Editor, pasteLabel } from './editor.ts'
import { graphemes } from './graphemes.ts'
import { cutLine, type Line, type StyledSpan, span } from './spans.ts'

/** Wraps the text of a field to a width. Returns the lines, and the column `x` and line `y` of the cursor. */
export function layoutEditor(editor: Editor, width: number): { lines: Line[]; x: number; y: number } {
  const lines: StyledSpan[][] = [[]]
  let column = 0
  let index = 0
  let [x, y] = [0, 0]
  const startLine = () => {
    lines.push([])
    column = 0
  }
  for (const character of graphemes(editor.text)) {
    const label = pasteLabel(editor, character)
    const characterWidth = label ? Math.min(width, displayWidth(label)) : displayWidth(character)
    if (character !== '\n' && column > 0 && column + characterWidth > width) startLine()
    if (index === editor.cursor) [x, y] = [column, lines.length - 1]
    if (character === '\n') startLine()
    else {
      lines.at(-1)!.push(...(label ? cutLine([span(label, 'accent')], width) : [span(character)]))
      column += characterWidth
    }
    index += character.length
  }
  if (index === editor.cursor) {
    if (column >= width) startLine()
    ;[x, y] = [column, lines.length - 1]
  }
  return { lines: lines.map(joinUnstyled), x, y }
}

/** Joins adjacent spans that have no tones. */
function joinUnstyled(line: readonly StyledSpan[]): Line {
  const spans: StyledSpan[] = []
  for (const next of line) {
    const last = spans.at(-1)
    if (last && last.tones.length === 0 && next.tones.length === 0)
      spans[spans.length - 1] = span(last.text + next.text)
    else spans.push(next)
  }
  return spans
}
