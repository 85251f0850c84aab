/** Meaning of a status, shown as a color: green, yellow or red. */
export type StatusTone = 'good' | 'warning' | 'bad'

/** Functions that apply a text style by its meaning. Without color, they return the text unchanged. */
export interface Style {
  dim(text: string): string
  strong(text: string): string
  good(text: string): string
  warning(text: string): string
  bad(text: string): string
  /** Style of a word that matches the question. */
  mark(text: string): string
}

const unstyled = (text: string) => text

const plainStyle: Style = {
  dim: unstyled,
  strong: unstyled,
  good: unstyled,
  warning: unstyled,
  bad: unstyled,
  mark: unstyled,
}

/** Returns a function that applies a style. @see ECMA-48 section 8.3.117 (SGR) */
function sgr(on: number, off: number) {
  return (text: string) => `\x1b[${on}m${text}\x1b[${off}m`
}

const colorStyle: Style = {
  dim: sgr(2, 22),
  strong: sgr(1, 22),
  good: sgr(32, 39),
  warning: sgr(33, 39),
  bad: sgr(31, 39),
  mark: sgr(1, 22),
}

/**
 * Returns the styles of a stream.
 *
 * @param useColor  true for a terminal that supports colors, unless the user disabled them
 */
export function styleFor(useColor: boolean): Style {
  return useColor ? colorStyle : plainStyle
}

const urlPattern = /^(?:file|https?):[\x21-\x7e]+$/

/**
 * Makes a line without line breaks a link, except for the white space at its start. Terminals that do not support links show
 * only the text.
 *
 * @param address  a URL; returns the line unchanged if it is not the encoded URL of a file or a web page
 */
export function linkText(line: string, address: string): string {
  if (!urlPattern.test(address)) return line
  const [, start = '', text = ''] = /^((?:\s|\x1b\[[0-9;]*m)*)(.*)$/.exec(line) ?? []
  return `${start}\x1b]8;;${address}\x1b\\${text}\x1b]8;;\x1b\\`
}
