import { bytesPerToken } from '../estimate-tokens.ts'
import { type Excerpt, excerptOf } from './excerpt.ts'
import { resultCharsMax } from './tool-result.ts'

/** Minimum size of a passage in bytes. A passage with less space is left out. */
const windowBytesMin = 480

/** Placeholder for citation numbers while sizes are computed. */
export const citationMax = 99_999

/** Returns the maximum total bytes of all passages in one call. */
export function bytesForTokens(passageTokens: number): number {
  return Math.min(passageTokens * bytesPerToken, resultCharsMax)
}

/** Returns the number of bytes of a text as a JSON string, without its quotes. */
export function jsonBytes(text: string): number {
  return Buffer.byteLength(JSON.stringify(text)) - 2
}

/**
 * Distributes bytes among passages, best first. A passage that does not fit is cut to an excerpt around its
 * match with the query. The last passages are left out if there is no space for a short excerpt.
 *
 * @param headBytes  size of the other fields of each passage
 * @returns excerpts of the first passages; at least one if there are any
 */
export function shareAmong(
  texts: readonly string[],
  query: string,
  bytesMax: number,
  headBytes: readonly number[] = [],
): Excerpt[] {
  const needs = texts.map((text, at) => (headBytes[at] ?? 0) + needOf(text))
  const included = texts.slice(0, Math.max(1, countWithin(needs, bytesMax)))
  let left = bytesMax - sum(needs.slice(0, included.length))
  return included.map((text, at) => {
    const reserved = Math.max(0, needs[at]! - (headBytes[at] ?? 0))
    const excerpt = excerptIn(text, query, left + reserved)
    left += reserved - jsonBytes(excerpt.text)
    return excerpt
  })
}

function needOf(text: string): number {
  return text.length > windowBytesMin ? windowBytesMin : Math.min(jsonBytes(text), windowBytesMin)
}

function countWithin(needs: readonly number[], bytesMax: number): number {
  let left = bytesMax
  const at = needs.findIndex(need => {
    left -= need
    return left < 0
  })
  return at === -1 ? needs.length : at
}

function excerptIn(text: string, query: string, bytesMax: number): Excerpt {
  for (let chars = Math.max(0, bytesMax); ; ) {
    const excerpt = excerptOf(text, query, chars)
    const bytes = jsonBytes(excerpt.text)
    if (bytes <= bytesMax || chars <= 0) return excerpt
    // Based on the length of the excerpt, which can be far below `chars`, so that each step returns a shorter
    // one.
    chars = Math.min(chars - 1, Math.floor((excerpt.text.length * bytesMax) / bytes))
  }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
