import { limits } from '../contract/limits.ts'

const quote = 0x22
const backslash = 0x5c
const colon = 0x3a
const [openArray, closeArray, openObject, closeObject] = [0x5b, 0x5d, 0x7b, 0x7d]

/**
 * Returns the reason why JSON is too costly to parse, as a phrase that follows "is", such as "nested deeper than 64
 * levels". Returns undefined if the JSON is within the limits. Does not check if the JSON is valid.
 *
 * Reads the bytes in one pass. Skips strings with `indexOf`, because brackets and colons in strings do not count.
 *
 * @param bytes  JSON in UTF-8
 */
export function describeJsonExcess(bytes: Buffer): string | undefined {
  let depth = 0
  // Number of arrays, objects and keys. Each takes far more memory than its bytes in the JSON.
  let nodes = 0
  for (let offset = 0; offset < bytes.length; offset++) {
    const byte = bytes[offset]!
    if (byte === quote) {
      offset = endOfString(bytes, offset + 1)
      // The JSON is invalid, but the parser would create the nodes before the unterminated string.
      if (offset < 0) break
    } else if (byte === openArray || byte === openObject) {
      nodes++
      if (++depth > limits.jsonDepth) return `nested deeper than ${limits.jsonDepth} levels`
    } else if (byte === closeArray || byte === closeObject) depth--
    else if (byte === colon) nodes++
  }
  if (nodes > limits.jsonNodes) return `larger than ${limits.jsonNodes} arrays, objects, and keys`
  return undefined
}

/** Returns the position of the closing quote of a string; negative if the string does not end. */
function endOfString(bytes: Buffer, from: number): number {
  let end = bytes.indexOf(quote, from)
  while (end >= 0 && isEscaped(bytes, end, from)) end = bytes.indexOf(quote, end + 1)
  return end
}

function isEscaped(bytes: Buffer, offset: number, from: number): boolean {
  let before = offset
  while (before > from && bytes[before - 1] === backslash) before--
  return (offset - before) % 2 === 1
}
