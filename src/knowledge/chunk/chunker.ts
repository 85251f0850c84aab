import { WbError } from '../../contract/errors.ts'
import type { ChunkMeasure } from './chunk-measure.ts'

/** Offsets of a chunk in a text, in UTF-16 code units: the chunk is `text.slice(start, end)`. */
export interface ChunkSpan {
  readonly start: number
  readonly end: number
}

/**
 * Validated chunk sizes, in UTF-16 code units unless there is a `measure`, and what the text is.
 *
 * @see docs/http.md#chunkers
 */
export interface ChunkOptions {
  /** Above 0. */
  readonly maxChars: number
  /** Below `maxChars`. */
  readonly minChars: number
  /** Below `maxChars`. */
  readonly overlapChars: number
  /** Null for no limit. */
  readonly maxLines: number | null
  /** Measures sizes in another unit. Only some chunkers support it. */
  readonly measure?: (text: string) => ChunkMeasure
  /** True if the text is source code. */
  readonly isCode?: boolean
}

/** An algorithm that splits texts. The engine and strategy of a chunking service select it. */
export interface Chunker {
  /** Name and version. The version must change whenever texts are split differently. */
  readonly id: string
  readonly engine: string
  readonly strategy: string
  readonly description: string
  /** True if the unit of sizes can be tokens. Other chunkers read them as characters. */
  readonly supportsTokens?: true
  /**
   * Splits a text. Returns spans in ascending order of their starts and ends; none for an empty text.
   *
   * A span has at most `maxChars` code units, except that a surrogate pair is not split if `maxChars` is 1.
   * Takes time linear in the length of the text and the number of chunks.
   *
   * @throws invalid_chunker  more than `chunksMax` chunks
   */
  chunk(text: string, options: ChunkOptions): ChunkSpan[]
}

/**
 * Maximum number of chunks in a text. An overlap just below `maxChars` would create about one chunk per character.
 */
export const chunksMax = 50_000

/** @throws invalid_chunker  there are already `chunksMax` chunks */
export function addSpan(spans: ChunkSpan[], start: number, end: number): void {
  if (spans.length === chunksMax)
    throw new WbError(
      'invalid_chunker',
      `maxChars and overlapChars would split this text into more than ${chunksMax} chunks`,
    )
  spans.push({ start, end })
}

/** Returns true if a cut at this offset would split a surrogate pair. */
export function splitsSurrogatePair(text: string, offset: number): boolean {
  return (text.charCodeAt(offset) & 0xfc00) === 0xdc00 && (text.charCodeAt(offset - 1) & 0xfc00) === 0xd800
}

/** Returns the length of the code point at an offset: 1 or 2. */
export function codePointLength(text: string, offset: number): number {
  return splitsSurrogatePair(text, offset + 1) ? 2 : 1
}
