import { bytesPerToken } from '../tokens.ts'
import { type Excerpt, excerptOf } from './excerpt.ts'
import { resultCharsMax } from './result.ts'

/** Minimum length of a passage in bytes. A passage with less room is left out. */
const windowBytesMin = 480

/** Placeholder for the number of a citation while sizes are counted. */
export const citationMax = 99_999

/** Returns the maximum bytes of all passages of one call together. */
export function bytesFor(passageTokens: number): number {
  return Math.min(passageTokens * bytesPerToken, resultCharsMax)
}

/** Returns the bytes of a text as a JSON string, without its quotes. */
export function jsonBytes(text: string): number {
  return Buffer.byteLength(JSON.stringify(text)) - 2
}

/**
 * Shares bytes among passages, best first. In their order they stay whole; one that does not fit becomes the window
 * around its match with the query, and the last of them are left out if there is not even room for a short window.
 *
 * @param headBytes  of the fields besides the text of each passage
 * @returns excerpts of the first passages; at least one unless there are none
 */
export function shareAmong(
  texts: readonly string[],
  query: string,
  bytesMax: number,
  headBytes: readonly number[] = [],
): Excerpt[] {
  const needs = texts.map((text, at) => (headBytes[at] ?? 0) + needOf(text))
  const kept = texts.slice(0, Math.max(1, countWithin(needs, bytesMax)))
  let left = bytesMax - sum(needs.slice(0, kept.length))
  return kept.map((text, at) => {
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
    // From the length of the excerpt, which can be far below `chars`: each step gives a shorter one.
    chars = Math.min(chars - 1, Math.floor((excerpt.text.length * bytesMax) / bytes))
  }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
