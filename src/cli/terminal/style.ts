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
