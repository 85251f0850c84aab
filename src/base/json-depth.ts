const quote = 0x22
const backslash = 0x5c
const [openArray, closeArray, openObject, closeObject] = [0x5b, 0x5d, 0x7b, 0x7d]

/**
 * Whether arrays and objects stand in one another deeper than allowed; brackets inside texts do not count.
 *
 * Cost: one pass over the bytes, before any parser recurses; text is skipped by `memchr`.
 *
 * @param bytes  JSON in UTF-8
 */
export function isDeeper(bytes: Buffer, allowed: number): boolean {
  let depth = 0
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]!
    if (byte === quote) {
      at = endOfText(bytes, at + 1)
      if (at < 0) return false
    } else if (byte === openArray || byte === openObject) {
      if (++depth > allowed) return true
    } else if (byte === closeArray || byte === closeObject) depth--
  }
  return false
}

/** Where the quote stands that ends a text; negative when nothing does. */
function endOfText(bytes: Buffer, from: number): number {
  let end = bytes.indexOf(quote, from)
  while (end >= 0 && isEscaped(bytes, end, from)) end = bytes.indexOf(quote, end + 1)
  return end
}

function isEscaped(bytes: Buffer, at: number, from: number): boolean {
  let before = at
  while (before > from && bytes[before - 1] === backslash) before--
  return (at - before) % 2 === 1
}
