/** Returns true for white space at which a line may break. No-break spaces belong to their word. */
export function isSpace(unit: number): boolean {
  if (unit < 0x80) return unit === 32 || (unit >= 9 && unit <= 13)
  if (unit < 0x1680) return unit === 0x85
  return (
    unit === 0x1680 ||
    (unit >= 0x2000 && unit <= 0x200b && unit !== 0x2007) ||
    unit === 0x2028 ||
    unit === 0x2029 ||
    unit === 0x205f ||
    unit === 0x3000
  )
}

/** Returns true if a line ends before this offset; CRLF is one line end. */
export function isLineStart(text: string, at: number): boolean {
  const unit = text.charCodeAt(at - 1)
  if (unit === 13) return text.charCodeAt(at) !== 10
  return unit === 10 || unit === 0x85 || unit === 0x2028 || unit === 0x2029
}

function isWordStart(text: string, at: number): boolean {
  return isSpace(text.charCodeAt(at - 1)) && !isSpace(text.charCodeAt(at))
}

/** Returns the first offset at or after `from` that is not white space. */
export function skipSpace(text: string, from: number): number {
  let at = from
  while (at < text.length && isSpace(text.charCodeAt(at))) at++
  return at
}

/** Returns the offset after the last character before `before` that is not white space. */
export function endOfText(text: string, before: number): number {
  let at = before
  while (at > 0 && isSpace(text.charCodeAt(at - 1))) at--
  return at
}

/** Returns the offset of the first white space at or after `from`, or the end of the text. */
export function skipWord(text: string, from: number): number {
  let at = from
  while (at < text.length && !isSpace(text.charCodeAt(at))) at++
  return at
}

/**
 * Returns the first beginning of a word at or after `from` that follows white space, or the end of the text.
 */
export function nextWord(text: string, from: number): number {
  let at = from
  while (at < text.length && !isWordStart(text, at)) at++
  return at
}

/** Returns the last beginning of a word in [from, to], or `from` - 1. */
export function lastWord(text: string, from: number, to: number): number {
  let at = to
  while (at >= from && !isWordStart(text, at)) at--
  return at
}

/** Returns the first beginning of a line at or after `from`, or the end of the text. */
export function nextLine(text: string, from: number): number {
  let at = from
  while (at < text.length && !isLineStart(text, at)) at++
  return at
}

/** Returns the last beginning of a line in [from, to], or `from` - 1. */
export function lastLine(text: string, from: number, to: number): number {
  let at = to
  while (at >= from && !isLineStart(text, at)) at--
  return at
}
