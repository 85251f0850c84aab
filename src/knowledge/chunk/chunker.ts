import { WbError } from '../../contract/errors.ts'

/** Offsets into a text, in UTF-16 code units; the chunk is exactly `text.slice(start, end)`. */
export interface ChunkSpan {
  readonly start: number
  readonly end: number
}

/**
 * Complete and valid sizes of chunks, in UTF-16 code units.
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
}

/** An algorithm that splits texts, chosen by the engine and strategy of a chunking service. */
export interface Chunker {
  /** Name and version. Every change that moves a cut needs a new version. */
  readonly id: string
  readonly engine: string
  readonly strategy: string
  readonly description: string
  /**
   * Splits a text. The spans ascend by start and by end; an empty text has none.
   *
   * A span has at most `maxChars` units. A surrogate pair is never split, so it exceeds a `maxChars` of 1.
   * Takes time linear in the length of the text and the number of chunks.
   *
   * @throws invalid_chunker  more than `chunksMax` chunks
   */
  chunk(text: string, options: ChunkOptions): ChunkSpan[]
}

/**
 * Maximum number of chunks of a text. An overlap near `maxChars` would create one chunk for each character.
 */
export const chunksMax = 1_000_000

/** @throws invalid_chunker  there are `chunksMax` chunks already */
export function addSpan(spans: ChunkSpan[], start: number, end: number): void {
  if (spans.length === chunksMax)
    throw new WbError(
      'invalid_chunker',
      `maxChars and overlapChars make more than ${chunksMax} chunks of this text`,
    )
  spans.push({ start, end })
}

/** Returns true if a cut at this offset would split a surrogate pair. */
export function splitsSurrogatePair(text: string, at: number): boolean {
  return (text.charCodeAt(at) & 0xfc00) === 0xdc00 && (text.charCodeAt(at - 1) & 0xfc00) === 0xd800
}

/** Returns the length of the code point at an offset: 1 or 2. */
export function codePointLength(text: string, at: number): number {
  return splitsSurrogatePair(text, at + 1) ? 2 : 1
}
