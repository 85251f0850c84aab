import { displayWidth, singleCellText } from '../../cli/terminal/terminal-text.ts'

const segmenter = new Intl.Segmenter(undefined, { granularity: 'grapheme' })

/** Splits text into user-perceived characters. @see Unicode UAX 29 */
export function graphemes(text: string): string[] {
  if (singleCellText.test(text)) return text.split('')
  return [...segmenter.segment(text)].map(({ segment }) => segment)
}

/** Returns the start index of the character before an index. */
export function characterBefore(text: string, index: number): number {
  if (index <= 0) return 0
  // A character can be long, but it does not cross a line break.
  const from = index < 2 ? 0 : text.lastIndexOf('\n', index - 2) + 1
  const last = graphemes(text.slice(from, index)).at(-1) ?? ''
  return index - last.length
}

/** Returns the end index of the character at an index. */
export function characterAfter(text: string, index: number): number {
  if (index >= text.length) return text.length
  const end = text.indexOf('\n', index + 1)
  const [first = ''] = graphemes(text.slice(index, end < 0 ? undefined : end + 1))
  return index + first.length
}

/** Returns the longest prefix of whole characters that fits into a width, but at least one character. */
export function fittingPrefix(text: string, width: number): string {
  if (singleCellText.test(text)) return text.slice(0, Math.max(1, width))
  let prefix = ''
  let prefixWidth = 0
  for (const { segment } of segmenter.segment(text)) {
    prefixWidth += displayWidth(segment)
    if (prefixWidth > width && prefix !== '') break
    prefix += segment
  }
  return prefix
}
