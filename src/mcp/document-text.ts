import { z } from 'zod'
import { cutUnits } from '../base/cut-units.ts'
import { overlapsOf } from '../base/text-overlaps.ts'
import { type Chunk, documents } from '../contract/documents.ts'
import { decodeCursor, encodeCursor } from './pages.ts'
import type { RouteCaller, RouteHandler } from './route-caller.ts'

/** One page of the text of a document. */
export interface TextPage {
  readonly text: string
  readonly nextCursor: string | null
}

export interface TextQuery {
  readonly knowledgeBaseId: string
  readonly documentId: string
  readonly cursor?: string | undefined
  readonly chunksMax: number
  /** Maximum length of a page, in UTF-16 units. */
  readonly charsMax: number
}

/** Start of a page: the cursor of its first chunk, and the number of characters from the start of that chunk to skip. */
const textCursor = z.tuple([z.string().nullable(), z.int().min(0)])
/** Minimum length of an overlap. A shorter match between two chunks can be a coincidence. */
const overlapCharsMin = 8
const overlapCharsMax = 16_384

/**
 * Reads a page of the text of a document, assembled from the chunks that the caller can read. Text that consecutive
 * chunks share appears once, unless it is shorter than {@link overlapCharsMin}. Together, the pages contain the whole
 * text.
 *
 * @throws document_not_found, knowledge_base_not_found, invalid_cursor, list_records_not_supported
 */
export async function readDocumentText(
  routeCaller: RouteCaller,
  handler: RouteHandler<typeof documents.chunks>,
  { knowledgeBaseId, documentId, cursor, chunksMax, charsMax }: TextQuery,
): Promise<TextPage> {
  const readChunks = async (chunkCursor: string | null, limit: number) => {
    const query = { limit, cursor: chunkCursor ?? undefined }
    const params = { knowledgeBaseId, documentId }
    const { body, headers } = await routeCaller.call(documents.chunks, handler, { params, query })
    return { chunks: body, next: (headers?.['x-next-cursor'] as string | undefined) ?? null }
  }
  const [chunkCursor, charsToSkip] = cursor === undefined ? [null, 0] : decodeCursor(textCursor, cursor)
  const { chunks, next } = await readChunks(chunkCursor, chunksMax)
  const text = joinChunks(chunks).slice(charsToSkip)
  const pageText = cutUnits(text, charsMax)
  if (pageText.length < text.length)
    return { text: pageText, nextCursor: encodeCursor([chunkCursor, charsToSkip + pageText.length]) }
  const [nextChunk] = next === null ? [] : (await readChunks(next, 1)).chunks
  const lastChunk = chunks.at(-1)
  if (!nextChunk || !lastChunk) return { text, nextCursor: null }
  const { separator, overlap } = findOverlap(lastChunk, nextChunk)
  return { text: text + separator, nextCursor: encodeCursor([next, overlap]) }
}

function joinChunks(chunks: readonly Chunk[]): string {
  return chunks
    .map((chunk, index) => {
      const text = chunk.text ?? ''
      if (index === 0) return text
      const { separator, overlap } = findOverlap(chunks[index - 1]!, chunk)
      return separator + text.slice(overlap)
    })
    .join('')
}

/**
 * Returns the separator to insert between two chunks, and the length of their overlap: the end of the first chunk
 * that is also the beginning of the second.
 */
function findOverlap(first: Chunk, second: Chunk): { separator: string; overlap: number } {
  const isConsecutive = first.chunkIndex !== null && second.chunkIndex === first.chunkIndex + 1
  if (!isConsecutive) return { separator: '\n\n', overlap: 0 }
  const [before, after] = [first.text ?? '', second.text ?? '']
  const [overlap = 0] = overlapsOf(before.slice(-overlapCharsMax), after.slice(0, overlapCharsMax))
  if (overlap >= overlapCharsMin) return { separator: '', overlap }
  const hasSpace = /\s$/.test(before) || /^\s/.test(after)
  return { separator: isFromSentenceChunker(second) && !hasSpace ? '\n' : '', overlap: 0 }
}

/**
 * Returns true if a chunk was created by a sentence chunker, which removes white space between sentences.
 *
 * @see docs/http.md#chunkers
 */
function isFromSentenceChunker({ payload }: Chunk): boolean {
  return String(payload['chunker.id']).startsWith('sentence')
}
