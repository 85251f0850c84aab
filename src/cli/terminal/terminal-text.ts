import stringWidth from 'string-width'

/** Escape sequences, whole: CSI, then those that carry a string up to BEL or ST (OSC, DCS, SOS, PM, APC), then short ones. */
const sequences =
  /(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?|\x1b[ -/]*[0-~]?/g

/** Control characters but tab and newline; marks that turn the direction of text around. */
const controls = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g

/**
 * Text that came from a server, a document or a model, fit for a terminal: without escape sequences and control
 * characters. Newlines and tabs stay.
 *
 * @see docs/security.md#rule-16
 */
export function plain(text: string): string {
  return text.replaceAll('\r\n', '\n').replace(sequences, '').replace(controls, '')
}

/** Controls but tab and newline, and what takes no cell, but for what puts a picture together. */
const unseen =
  /(?![\t\n])(?!(?<=\p{Extended_Pictographic}\ufe0f?)[\u200d\ufe0f])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu

/**
 * Text that somebody decides about, fit for a terminal: what `plain` would take out, and what nobody would see, stands
 * escaped, as whoever is given the text reads that too.
 */
export function revealed(text: string): string {
  return text.replaceAll('\r\n', '\n').replace(unseen, escaped)
}

/** A character as JSON may write it. */
function escaped(character: string): string {
  const units = character.split('').map(unit => unit.charCodeAt(0).toString(16).padStart(4, '0'))
  return units.map(unit => `\\u${unit}`).join('')
}

/** What our own styles are made of: colours and weights, which move nothing and send nothing. */
const styles = /(\x1b\[[0-9;]*m)/

/** Lines of ours with their styles, and no other sequence: the last net, for a place that forgot `plain`. */
export function harmless(text: string): string {
  const parts = text.split(styles)
  return parts.map((part, at) => (at % 2 === 1 ? part : plain(part))).join('')
}

/** Text in which API keys are cut behind their public prefix. */
export function withoutTokens(text: string): string {
  return text.replace(/\b(wb_live_[a-z0-9]{12}_)[A-Za-z0-9]+/g, '$1…')
}

/** Plain text on one line. */
export function plainLine(text: string): string {
  return plain(text).replace(/\s+/g, ' ').trim()
}

/** JSON of a value in which no control character stands raw, C1 and direction marks included. */
export function plainJson(value: unknown, indent?: number): string {
  return (JSON.stringify(value, null, indent) ?? 'null').replace(
    /[\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g,
    escaped,
  )
}

const asciiLine = /^[\x20-\x7e]*$/
const segmenter = new Intl.Segmenter()

/** Returns the number of terminal cells that a line takes. Styles take none. */
export function displayWidth(line: string): number {
  return asciiLine.test(line) ? line.length : stringWidth(line)
}

/** Cuts a line to a width in cells, with an ellipsis where text is missing. */
export function truncate(line: string, width: number): string {
  if (displayWidth(line) <= width) return line
  let kept = ''
  let used = 1
  for (const { segment } of segmenter.segment(line)) {
    used += displayWidth(segment)
    if (used > width) break
    kept += segment
  }
  return `${kept}…`
}

/** A line filled up with blanks to a width, on the right or, for numbers, on the left. */
export function pad(line: string, width: number, side: 'left' | 'right' = 'right'): string {
  const blanks = ' '.repeat(Math.max(0, width - displayWidth(line)))
  return side === 'right' ? line + blanks : blanks + line
}
