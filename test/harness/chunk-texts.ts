import type { BoundChunker } from '../../src/knowledge/chunk/index.ts'

/** Returns the chunks of a text. */
export function chunkTexts(chunker: BoundChunker, text: string): string[] {
  return chunker.chunk(text).map(({ start, end }) => text.slice(start, end))
}
