import { z } from 'zod'
import { truncateText } from '../agents/tools/tool-result.ts'
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

/** Start of a page: the cursor of its first chunks, and the number of their characters on earlier pages. */
const textCursor = z.tuple([z.string().nullable(), z.int().min(0)])
/** Minimum length of an overlap. A shorter match between two chunks can be a coincidence. */
const overlapCharsMin = 8
const overlapCharsMax = 16_384

/**
 * Reads a page of the text of a document, assembled from the chunks that the caller can read. Text that
 * consecutive chunks share appears once. Together, the pages contain the whole text.
 *
 * @throws document_not_found, knowledge_base_not_found, invalid_cursor, list_records_not_supported
 */
export async function readDocumentText(
  rest: RouteCaller,
  handler: RouteHandler<typeof documents.chunks>,
  { knowledgeBaseId, documentId, cursor, chunksMax, charsMax }: TextQuery,
): Promise<TextPage> {
  const read = async (from: string | null, limit: number) => {
    const query = { limit, cursor: from ?? undefined }
    const params = { knowledgeBaseId, documentId }
    const { body, headers } = await rest.call(documents.chunks, handler, { params, query })
    return { chunks: body, next: (headers?.['x-next-cursor'] as string | undefined) ?? null }
  }
  const [from, skipped] = cursor === undefined ? [null, 0] : decodeCursor(textCursor, cursor)
  const { chunks, next } = await read(from, chunksMax)
  const text = joinChunks(chunks).slice(skipped)
  const shown = truncateText(text, charsMax)
  if (shown.length < text.length)
    return { text: shown, nextCursor: encodeCursor([from, skipped + shown.length]) }
  const [following] = next === null ? [] : (await read(next, 1)).chunks
  const last = chunks.at(-1)
  if (!following || !last) return { text, nextCursor: null }
  const { glue, overlap } = findSeam(last, following)
  return { text: text + glue, nextCursor: encodeCursor([next, overlap]) }
}

function joinChunks(chunks: readonly Chunk[]): string {
  return chunks
    .map((chunk, at) => {
      const text = chunk.text ?? ''
      if (at === 0) return text
      const { glue, overlap } = findSeam(chunks[at - 1]!, chunk)
      return glue + text.slice(overlap)
    })
    .join('')
}

/**
 * Returns the separator of two chunks, and the length of their overlap: the prefix of the second that the
 * first ends with.
 */
function findSeam(first: Chunk, second: Chunk): { glue: string; overlap: number } {
  const isConsecutive = first.chunkIndex !== null && second.chunkIndex === first.chunkIndex + 1
  if (!isConsecutive) return { glue: '\n\n', overlap: 0 }
  const [before, after] = [first.text ?? '', second.text ?? '']
  const overlap = sharedLength(before.slice(-overlapCharsMax), after.slice(0, overlapCharsMax))
  if (overlap >= overlapCharsMin) return { glue: '', overlap }
  const isApart = /\s$/.test(before) || /^\s/.test(after)
  return { glue: leavesOutSpace(second) && !isApart ? '\n' : '', overlap: 0 }
}

/**
 * Returns true for a chunk whose chunker removes white space between sentences.
 *
 * @see docs/http.md#chunkers
 */
function leavesOutSpace({ payload }: Chunk): boolean {
  return String(payload['chunker.id']).startsWith('sentence')
}

/**
 * Returns the length of the longest proper prefix of `after` that `before` ends with.
 *
 * Uses the algorithm of Knuth, Morris and Pratt, which is linear in both texts.
 */
function sharedLength(before: string, after: string): number {
  const fallback = [0]
  for (let at = 1, length = 0; at < after.length; at++) {
    while (length > 0 && after[at] !== after[length]) length = fallback[length - 1]!
    if (after[at] === after[length]) length++
    fallback.push(length)
  }
  let length = 0
  for (const unit of before.split('')) {
    if (length === after.length) length = fallback[length - 1] ?? 0
    while (length > 0 && unit !== after[length]) length = fallback[length - 1]!
    if (unit === after[length]) length++
  }
  return length === after.length ? (fallback[length - 1] ?? 0) : length
}
