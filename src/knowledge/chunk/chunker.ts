import { WbError } from '../../contract/errors.ts'

/** Offsets into a text in UTF-16 code units; the chunk is exactly `text.slice(start, end)`. */
export interface Span {
  readonly start: number
  readonly end: number
}

/** Sizes of chunks in UTF-16 code units, complete and valid. @see docs/http.md#chunkers */
export interface ChunkOptions {
  /** Above 0. */
  readonly maxChars: number
  /** Below `maxChars`. */
  readonly minChars: number
  /** Below `maxChars`. */
  readonly overlapChars: number
  /** Null: lines are not counted. */
  readonly maxLines: number | null
}

/** A way to cut a text, chosen by the engine and strategy of a chunking service. */
export interface Chunker {
  /** Name and version; a change that moves a cut is a new version. */
  readonly id: string
  readonly engine: string
  readonly strategy: string
  readonly description: string
  /**
   * Cut a text; an empty text has no chunks, and the spans ascend by start and by end.
   *
   * A span is `maxChars` long at most, save for a surrogate pair where `maxChars` is 1: pairs are never split.
   * Cost: linear in the text and the number of chunks.
   *
   * @throws invalid_chunker  more than `chunksMax` chunks
   */
  chunk(text: string, options: ChunkOptions): Span[]
}

/** Chunks of one text; an overlap of nearly `maxChars` would otherwise make one of each character. */
export const chunksMax = 1_000_000

/** @throws invalid_chunker  there are `chunksMax` already */
export function add(spans: Span[], start: number, end: number): void {
  if (spans.length === chunksMax)
    throw new WbError(
      'invalid_chunker',
      `maxChars and overlapChars make more than ${chunksMax} chunks of this text`,
    )
  spans.push({ start, end })
}

/** Whether a cut at this offset would part the halves of a surrogate pair. */
export function splitsPair(text: string, at: number): boolean {
  return (text.charCodeAt(at) & 0xfc00) === 0xdc00 && (text.charCodeAt(at - 1) & 0xfc00) === 0xd800
}

/** Length of the code point at an offset: 1 or 2. */
export function pointLength(text: string, at: number): number {
  return splitsPair(text, at + 1) ? 2 : 1
}
