import { bytesPerToken } from '../estimate-tokens.ts'
import { type Excerpt, excerptOf } from './excerpt.ts'
import { resultCharsMax } from './tool-result.ts'

/** Minimum size in bytes to which a passage is shortened. If less space is left, the passage is omitted. */
const passageBytesMin = 480

/** Highest expected citation number. Used to compute sizes before the numbers are assigned. */
export const citationMax = 99_999

/** Converts the maximum tokens of the passages of one call to bytes, within the maximum length of a result. */
export function bytesForTokens(passageTokens: number): number {
  return Math.min(passageTokens * bytesPerToken, resultCharsMax)
}

/** Returns the number of bytes of a text as a JSON string, not counting the quotes. */
export function jsonBytes(text: string): number {
  return Buffer.byteLength(JSON.stringify(text)) - 2
}

/**
 * Shortens passages until they fit into `bytesMax`. A passage that does not fit becomes an excerpt around its match
 * with the query. The last passages are omitted if there is no space for excerpts of the minimum size.
 *
 * @param texts      texts of the passages, best first
 * @param headBytes  size of the other fields of each passage
 * @returns the texts or excerpts of the first passages; at least one if there are any
 */
export function fitPassages(
  texts: readonly string[],
  query: string,
  bytesMax: number,
  headBytes: readonly number[] = [],
): Excerpt[] {
  const minimumBytes = texts.map((text, at) => (headBytes[at] ?? 0) + minimumBytesOf(text))
  const included = texts.slice(0, Math.max(1, countThatFits(minimumBytes, bytesMax)))
  let remainingBytes = bytesMax - sum(minimumBytes.slice(0, included.length))
  return included.map((text, at) => {
    const reserved = Math.max(0, minimumBytes[at]! - (headBytes[at] ?? 0))
    const excerpt = excerptWithinBytes(text, query, remainingBytes + reserved)
    remainingBytes += reserved - jsonBytes(excerpt.text)
    return excerpt
  })
}

function minimumBytesOf(text: string): number {
  return text.length > passageBytesMin ? passageBytesMin : Math.min(jsonBytes(text), passageBytesMin)
}

function countThatFits(sizes: readonly number[], bytesMax: number): number {
  let remainingBytes = bytesMax
  const at = sizes.findIndex(size => {
    remainingBytes -= size
    return remainingBytes < 0
  })
  return at === -1 ? sizes.length : at
}

function excerptWithinBytes(text: string, query: string, bytesMax: number): Excerpt {
  for (let chars = Math.max(0, bytesMax); ; ) {
    const excerpt = excerptOf(text, query, chars)
    const bytes = jsonBytes(excerpt.text)
    if (bytes <= bytesMax || chars <= 0) return excerpt
    // Computed from the length of the excerpt, which can be far below `chars`. Otherwise, the next excerpt could be the
    // same.
    chars = Math.min(chars - 1, Math.floor((excerpt.text.length * bytesMax) / bytes))
  }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
