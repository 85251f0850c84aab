import stringWidth from 'string-width'

/**
 * Escape sequences: CSI sequences, string sequences up to BEL or ST (OSC, DCS, SOS, PM, APC), and short sequences.
 */
const sequences =
  /(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?|\x1b[ -/]*[0-~]?/g

/** Control characters except tab and newline, and characters that change the text direction. */
const controls = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g

/**
 * Removes escape sequences and control characters from untrusted text. Keeps newlines and tabs.
 *
 * @see docs/security.md#rule-16
 */
export function plain(text: string): string {
  return text.replaceAll('\r\n', '\n').replace(sequences, '').replace(controls, '')
}

/** Control characters except tab and newline, and invisible characters except those between parts of an emoji. */
const hiddenCharacters =
  /(?![\t\n])(?!(?<=\p{Extended_Pictographic}\ufe0f?)[\u200d\ufe0f])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu

/**
 * Escapes control and invisible characters in text that the user reviews, so that the user sees everything
 * that a model reads.
 */
export function revealHidden(text: string): string {
  return text.replaceAll('\r\n', '\n').replace(hiddenCharacters, escapeCharacter)
}

/** Escapes a character like JSON does. */
function escapeCharacter(character: string): string {
  const codeUnits = character.split('').map(unit => unit.charCodeAt(0).toString(16).padStart(4, '0'))
  return codeUnits.map(unit => `\\u${unit}`).join('')
}

/** Color and weight sequences, which are harmless. */
const styles = /(\x1b\[[0-9;]*m)/

/** Removes all escape sequences except styles. A safeguard for text to which {@link plain} was not applied. */
export function keepStylesOnly(text: string): string {
  const parts = text.split(styles)
  return parts.map((part, at) => (at % 2 === 1 ? part : plain(part))).join('')
}

/** Replaces the secret part of API keys, which follows their public prefix, with an ellipsis. */
export function withoutTokens(text: string): string {
  return text.replace(/\b(wb_live_[a-z0-9]{12}_)[A-Za-z0-9]+/g, '$1…')
}

/** Converts text to one line of plain text. */
export function plainLine(text: string): string {
  return plain(text).replace(/\s+/g, ' ').trim()
}

/** Formats a value as JSON with all control characters escaped, including C1 and direction marks. */
export function plainJson(value: unknown, indent?: number): string {
  return (JSON.stringify(value, null, indent) ?? 'null').replace(
    /[\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g,
    escapeCharacter,
  )
}

/**
 * Text in which each character occupies one cell: ASCII, Latin, Greek, Cyrillic, punctuation and box drawing.
 * The width of such text is its length. Calculating the width with `string-width` takes a hundred times as long.
 */
export const singleCellText =
  /^[\x20-\x7e\xa1-\xac\xae-\u02ff\u0370-\u0482\u048a-\u052f\u2010-\u2027\u2500-\u257f]*$/
const segmenter = new Intl.Segmenter()

/** Returns the number of terminal cells that a line occupies. Styles occupy none. */
export function displayWidth(line: string): number {
  return singleCellText.test(line) ? line.length : stringWidth(line)
}

/** Truncates a line to a width in cells. A truncated line ends with an ellipsis. */
export function truncate(line: string, width: number): string {
  if (displayWidth(line) <= width) return line
  if (width < 1) return ''
  let prefix = ''
  let usedCells = 1
  for (const { segment } of segmenter.segment(line)) {
    usedCells += displayWidth(segment)
    if (usedCells > width) break
    prefix += segment
  }
  return `${prefix}…`
}

/** Pads a line with spaces to a width in cells, on the right or on the left. */
export function pad(line: string, width: number, side: 'left' | 'right' = 'right'): string {
  const blanks = ' '.repeat(Math.max(0, width - displayWidth(line)))
  return side === 'right' ? line + blanks : blanks + line
}
