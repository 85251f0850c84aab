import { overlapsOf } from '../../base/text-overlaps.ts'
import { startPayloadKey } from '../../contract/fields.ts'
import { limits } from '../../contract/limits.ts'
import type { RecordView } from '../../storage/content.ts'
import { matchesFilter } from '../../storage/filter.ts'
import { totalRecordChars } from '../../storage/record-length.ts'
import { requireListing } from '../../storage/store-features.ts'
import { type ChunkRange, documentKeyText, type ShapedCandidate } from './shaped-candidate.ts'

/** Minimum length of an overlap whose length is not stored. A shorter match between two chunks can be a coincidence. */
const overlapCharsMin = 8
/** Greater than the ID of every chunk. */
const lastId = '\u{10ffff}'

/** A passage of several chunks. */
export interface JoinedPassage {
  readonly chunks: ChunkRange
  readonly text: string
}

/**
 * Adds the range of chunks to join to each candidate. A candidate whose range overlaps or continues the range of a better one is
 * merged into it, unless that would have too many chunks. No two ranges overlap.
 *
 * @param neighbors  number of chunks on each side of a candidate; 0 changes nothing
 */
export function joinNeighbors(candidates: readonly ShapedCandidate[], neighbors: number): ShapedCandidate[] {
  if (neighbors === 0) return [...candidates]
  const passages: { candidate: ShapedCandidate; from: number; range?: ChunkRange; merged: number }[] = []
  const byDocument = new Map<string, { range: ChunkRange; merged: number }[]>()
  for (const [index, candidate] of candidates.entries()) {
    const document = documentKeyText(candidate)
    const { chunkIndex } = candidate.view
    const canJoin = candidate.source.ranking.context.store.listing !== undefined
    if (document === null || chunkIndex === null || !canJoin) {
      passages.push({ candidate, from: index + 1, merged: 0 })
      continue
    }
    const others = byDocument.get(document) ?? []
    byDocument.set(document, others)
    const within = others.find(({ range }) => range.first <= chunkIndex && chunkIndex <= range.last)
    if (within) {
      within.merged++
      continue
    }
    const range = {
      first: Math.max(
        0,
        chunkIndex - neighbors,
        ...others.map(({ range }) => (range.last < chunkIndex ? range.last + 1 : 0)),
      ),
      last: Math.min(
        chunkIndex + neighbors,
        ...others.map(({ range }) => (range.first > chunkIndex ? range.first - 1 : Number.POSITIVE_INFINITY)),
      ),
    }
    const adjacent = others.find(other => {
      const isAdjacent = other.range.last === range.first - 1 || other.range.first === range.last + 1
      return isAdjacent && lengthOf(other.range) + lengthOf(range) <= limits.joinedChunks
    })
    if (adjacent) {
      adjacent.range = unionOf(adjacent.range, range)
      adjacent.merged++
      continue
    }
    const passage = { candidate, from: index + 1, range, merged: 0 }
    others.push(passage)
    passages.push(passage)
  }
  return passages.map(({ candidate, from, range, merged }, index) => ({
    ...candidate,
    ...(range && { range }),
    changes: { ...candidate.changes, neighbors: { merged, from, to: index + 1 } },
  }))
}

function lengthOf({ first, last }: ChunkRange): number {
  return last - first + 1
}

function unionOf(a: ChunkRange, b: ChunkRange): ChunkRange {
  return { first: Math.min(a.first, b.first), last: Math.max(a.last, b.last) }
}

/**
 * Reads the chunks in the range of a candidate, and joins them. Omits chunks that the caller may not see or that do not match
 * the filter, those beyond them, and those that would make the passage too long. `passage` is undefined if the candidate was
 * deleted or replaced in the meantime.
 *
 * @param charsMax  total length of the chunks, in characters of JSON, after which no others are read
 */
export async function readPassage(
  { source, record, view }: ShapedCandidate,
  { first, last }: ChunkRange,
  charsMax: number,
): Promise<{ passage: JoinedPassage | undefined; charsRead: number }> {
  const { context, plan } = source.ranking
  const { visibility, filter } = plan.constraints
  const listed = await requireListing(context.store).listByDocument(context.key, {
    documentId: view.documentId!,
    ...(first > 0 && { after: { chunkIndex: first - 1, id: lastId } }),
    limit: last - first + 1,
    visibility,
    charsMax,
  })
  const chunks = listed.filter(({ payload }) => matchesFilter(filter, payload))
  const byIndex = new Map(chunks.map(chunk => [chunk.chunkIndex, chunk]))
  const charsRead = totalRecordChars(listed)
  if (byIndex.get(view.chunkIndex)?.record !== record) return { passage: undefined, charsRead }
  const range = fittingRange(byIndex, view.chunkIndex!, { first, last })
  const indexes = Array.from({ length: lengthOf(range) }, (_, offset) => range.first + offset)
  const text = joinText(indexes.map(index => byIndex.get(index)!))
  return { passage: { chunks: range, text }, charsRead }
}

/** Widens the range of one chunk on both sides in turn, to existing chunks within the limits. */
function fittingRange(
  byIndex: ReadonlyMap<number | null, RecordView>,
  best: number,
  within: ChunkRange,
): ChunkRange {
  let range = { first: best, last: best }
  let chars = byIndex.get(best)!.text?.length ?? 0
  const canGrow = { before: true, after: true }
  const grow = (side: 'before' | 'after') => {
    const index = side === 'before' ? range.first - 1 : range.last + 1
    const length = byIndex.get(index)?.text?.length
    const isWithin = index >= within.first && index <= within.last
    canGrow[side] = isWithin && length !== undefined && chars + length <= limits.joinedTextChars
    if (!canGrow[side]) return
    chars += length!
    range = unionOf(range, { first: index, last: index })
  }
  while (canGrow.before || canGrow.after) {
    if (canGrow.after) grow('after')
    if (canGrow.before) grow('before')
  }
  return range
}

/**
 * Joins the texts of consecutive chunks. Text that chunks share appears once. White space that the sentence chunker removed
 * between chunks becomes a line break, or a blank line if it was longer than a character. Chunks that were ingested before
 * offsets were stored are joined at their longest overlap.
 */
export function joinText(chunks: readonly Pick<RecordView, 'text' | 'payload'>[]): string {
  let joined = ''
  let end: number | undefined
  for (const { text, payload } of chunks) {
    const part = text ?? ''
    const start = payload[startPayloadKey]
    if (typeof start !== 'number') {
      joined += part.slice(longestOverlap(joined, part))
      end = undefined
      continue
    }
    if (end === undefined) joined += part.slice(longestOverlap(joined, part))
    else if (start > end) joined += (start - end > 1 ? '\n\n' : '\n') + part
    else joined += part.slice(end - start)
    end = start + part.length
  }
  return joined
}

function longestOverlap(text: string, next: string): number {
  const [longest = 0] = overlapsOf(text, next)
  return longest >= overlapCharsMin ? longest : 0
}
