import { displayWidth } from '../../cli/terminal/terminal-text.ts'

const segmenter = new Intl.Segmenter(undefined, { granularity: 'grapheme' })

/** Shown as one picture of two cells, whatever it is made of. */
const emoji =
  /\p{Emoji_Presentation}|\p{Emoji}\ufe0f|\p{Regional_Indicator}{2}|\u200d\p{Extended_Pictographic}/u

/** Signs that take a cell each and join with nothing: ASCII, Latin, punctuation and the lines of frames. */
const printable = /^[\x20-\x7e\xa1-\xac\xae-\u02ff\u2010-\u2027\u2500-\u257f]*$/

/** What a person takes for single characters, in order. @see Unicode UAX 29 */
export function graphemes(text: string): string[] {
  if (printable.test(text)) return text.split('')
  return [...segmenter.segment(text)].map(({ segment }) => segment)
}

/** Where the character before an index begins. */
export function before(text: string, index: number): number {
  if (index <= 0) return 0
  // A character may reach far back, a line never does.
  const from = index < 2 ? 0 : text.lastIndexOf('\n', index - 2) + 1
  const last = graphemes(text.slice(from, index)).at(-1) ?? ''
  return index - last.length
}

/** Where the character at an index ends. */
export function after(text: string, index: number): number {
  if (index >= text.length) return text.length
  const end = text.indexOf('\n', index + 1)
  const [first = ''] = graphemes(text.slice(index, end < 0 ? undefined : end + 1))
  return index + first.length
}

/** Cells that a text without newlines takes in a terminal. */
export function cells(text: string): number {
  if (printable.test(text)) return text.length
  let sum = 0
  for (const { segment } of segmenter.segment(text)) sum += cellsOf(segment)
  return sum
}

function cellsOf(grapheme: string): number {
  if (emoji.test(grapheme)) return 2
  const [first = ''] = grapheme
  return displayWidth(first)
}

/** The longest beginning of a text that fits, in whole characters; at least one, so that something always moves on. */
export function fitting(text: string, width: number): string {
  if (printable.test(text)) return text.slice(0, Math.max(1, width))
  let kept = ''
  let used = 0
  for (const { segment } of segmenter.segment(text)) {
    used += cellsOf(segment)
    if (used > width && kept !== '') break
    kept += segment
  }
  return kept
}

/** A text cut to a width, with an ellipsis where something is missing. */
export function cut(text: string, width: number): string {
  if (cells(text) <= width) return text
  return width < 2 ? '…'.slice(0, width) : `${fitting(text, width - 1)}…`
}

/** A text filled up with blanks. */
export function filled(text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - cells(text)))
}
