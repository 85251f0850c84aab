import { displayWidth } from '../../cli/terminal/terminal-text.ts'
import { type Editor, pasteLabel } from './editor.ts'
import { graphemes } from './graphemes.ts'
import { cutLine, type Line, type StyledSpan, span } from './spans.ts'

/** Wraps the text of a field to a width. Returns its lines, and the column `x` and line `y` of the cursor. */
export function layoutEditor(editor: Editor, width: number): { lines: Line[]; x: number; y: number } {
  const lines: StyledSpan[][] = [[]]
  let used = 0
  let at = 0
  let [x, y] = [0, 0]
  const next = () => {
    lines.push([])
    used = 0
  }
  for (const character of graphemes(editor.text)) {
    const label = pasteLabel(editor, character)
    const wide = label ? Math.min(width, displayWidth(label)) : displayWidth(character)
    if (character !== '\n' && used > 0 && used + wide > width) next()
    if (at === editor.cursor) [x, y] = [used, lines.length - 1]
    if (character === '\n') next()
    else {
      lines.at(-1)!.push(...(label ? cutLine([span(label, 'accent')], width) : [span(character)]))
      used += wide
    }
    at += character.length
  }
  if (at === editor.cursor) {
    if (used >= width) next()
    ;[x, y] = [used, lines.length - 1]
  }
  return { lines: lines.map(joinUnstyled), x, y }
}

/** Joins adjacent spans that have no tones. */
function joinUnstyled(line: readonly StyledSpan[]): Line {
  const spans: StyledSpan[] = []
  for (const one of line) {
    const last = spans.at(-1)
    if (last && last.tones.length === 0 && one.tones.length === 0)
      spans[spans.length - 1] = span(last.text + one.text)
    else spans.push(one)
  }
  return spans
}
