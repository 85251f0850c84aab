/** Returns true for white space at which a line can break. A no-break space is part of a word. */
export function isSpace(codeUnit: number): boolean {
  if (codeUnit < 0x80) return codeUnit === 32 || (codeUnit >= 9 && codeUnit <= 13)
  if (codeUnit < 0x1680) return codeUnit === 0x85
  return (
    codeUnit === 0x1680 ||
    (codeUnit >= 0x2000 && codeUnit <= 0x200b && codeUnit !== 0x2007) ||
    codeUnit === 0x2028 ||
    codeUnit === 0x2029 ||
    codeUnit === 0x205f ||
    codeUnit === 0x3000
  )
}

/** Returns true if the character before this offset ends a line. CRLF is one line break. */
export function isLineStart(text: string, offset: number): boolean {
  const codeUnit = text.charCodeAt(offset - 1)
  if (codeUnit === 13) return text.charCodeAt(offset) !== 10
  return codeUnit === 10 || codeUnit === 0x85 || codeUnit === 0x2028 || codeUnit === 0x2029
}

function isWordStart(text: string, offset: number): boolean {
  return isSpace(text.charCodeAt(offset - 1)) && !isSpace(text.charCodeAt(offset))
}

/** Returns the first offset at or after `from` that is not white space. */
export function skipSpace(text: string, from: number): number {
  let offset = from
  while (offset < text.length && isSpace(text.charCodeAt(offset))) offset++
  return offset
}

/**
 * Skips white space backward: returns the offset after the last other character before `before`, or 0.
 */
export function endOfText(text: string, before: number): number {
  let offset = before
  while (offset > 0 && isSpace(text.charCodeAt(offset - 1))) offset--
  return offset
}

/** Returns the offset of the first white space at or after `from`, or the end of the text. */
export function skipWord(text: string, from: number): number {
  let offset = from
  while (offset < text.length && !isSpace(text.charCodeAt(offset))) offset++
  return offset
}

/**
 * Returns the offset of the first word start at or after `from` that follows white space, or the end of the text.
 */
export function nextWord(text: string, from: number): number {
  let offset = from
  while (offset < text.length && !isWordStart(text, offset)) offset++
  return offset
}

/** Returns the offset of the last word start in [from, to]; `from` - 1 if no word starts there. */
export function lastWord(text: string, from: number, to: number): number {
  let offset = to
  while (offset >= from && !isWordStart(text, offset)) offset--
  return offset
}

/** Returns the offset of the first line start at or after `from`, or the end of the text. */
export function nextLine(text: string, from: number): number {
  let offset = from
  while (offset < text.length && !isLineStart(text, offset)) offset++
  return offset
}

/** Returns the offset of the last line start in [from, to]; `from` - 1 if no line starts there. */
export function lastLine(text: string, from: number, to: number): number {
  let offset = to
  while (offset >= from && !isLineStart(text, offset)) offset--
  return offset
}

/** Returns the start of the first line that is not blank. */
export function firstLineStart(text: string): number {
  let offset = skipSpace(text, 0)
  while (offset > 0 && !isLineStart(text, offset)) offset--
  return offset
}
