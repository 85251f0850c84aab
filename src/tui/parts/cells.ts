import stringWidth from 'string-width'

const segmenter = new Intl.Segmenter(undefined, { granularity: 'grapheme' })

/**
 * Characters of one cell that combine with no other: ASCII, Latin, Greek, Cyrillic, punctuation and box drawing.
 * `string-width` takes a hundred times as long for them.
 */
const singleCells = /^[\x20-\x7e\xa1-\xac\xae-\u02ff\u0370-\u0482\u048a-\u052f\u2010-\u2027\u2500-\u257f]*$/

/** Splits a text into user-perceived characters. @see Unicode UAX 29 */
export function graphemes(text: string): string[] {
  if (singleCells.test(text)) return text.split('')
  return [...segmenter.segment(text)].map(({ segment }) => segment)
}

/** Returns the index at which the character before an index begins. */
export function before(text: string, index: number): number {
  if (index <= 0) return 0
  // A character can be long, but it does not cross a line break.
  const from = index < 2 ? 0 : text.lastIndexOf('\n', index - 2) + 1
  const last = graphemes(text.slice(from, index)).at(-1) ?? ''
  return index - last.length
}

/** Returns the index at which the character at an index ends. */
export function after(text: string, index: number): number {
  if (index >= text.length) return text.length
  const end = text.indexOf('\n', index + 1)
  const [first = ''] = graphemes(text.slice(index, end < 0 ? undefined : end + 1))
  return index + first.length
}

/** Returns the width of a text without line breaks, in terminal cells. */
export function cells(text: string): number {
  return singleCells.test(text) ? text.length : stringWidth(text)
}

/** Returns the longest prefix of whole characters that fits a width, but at least one character. */
export function fitting(text: string, width: number): string {
  if (singleCells.test(text)) return text.slice(0, Math.max(1, width))
  let prefix = ''
  let used = 0
  for (const { segment } of segmenter.segment(text)) {
    used += cells(segment)
    if (used > width && prefix !== '') break
    prefix += segment
  }
  return prefix
}

/** Truncates a text to a width, with an ellipsis. */
export function truncateCells(text: string, width: number): string {
  if (cells(text) <= width) return text
  return width < 2 ? '…'.slice(0, width) : `${fitting(text, width - 1)}…`
}

/** Pads a text with spaces on the right. */
export function padRight(text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - cells(text)))
}
