/** Styles of a cell, by its meaning: green, yellow, and red. */
export type StatusTone = 'good' | 'warning' | 'bad'

/** Marks that carry meaning; plain where colour is not wanted. */
export interface Style {
  dim(text: string): string
  strong(text: string): string
  good(text: string): string
  warning(text: string): string
  bad(text: string): string
  /** A word that matches the question. */
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
 * @param colour  true for a terminal that supports colors, unless the user disabled them
 */
export function styleFor(colour: boolean): Style {
  return colour ? colorStyle : plainStyle
}
