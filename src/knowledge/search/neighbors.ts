import { groupBy } from '../../base/group-by.ts'
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

/** A passage that consists of a candidate and its neighbors. */
interface Passage {
  readonly candidate: ShapedCandidate
  /** Rank of the candidate before joining, from 1. */
  readonly from: number
  /** Undefined if the candidate cannot be joined. Gets shorter if a chunk in it becomes another passage. */
  range?: ChunkRange
  /** Part of the range that consists of the candidate and merged ones. */
  readonly merged?: ChunkRange
}

/**
 * Adds the range of chunks to join to each candidate: up to `neighbors` chunks on each side. Candidates in the range of a better
 * one are merged into it if nothing separates them. No two ranges overlap.
 *
 * @param candidates  best first
 * @param neighbors   0 changes nothing
 */
export function joinNeighbors(candidates: readonly ShapedCandidate[], neighbors: number): ShapedCandidate[] {
  if (neighbors === 0) return [...candidates]
  const viewsOf = groupViews(candidates)
  const passages: Passage[] = []
  const ownersOf = new Map<string, Map<number, Passage>>()
  for (const [index, candidate] of candidates.entries()) {
    const from = index + 1
    const { chunkIndex } = candidate.view
    const document = documentKeyText(candidate)
    const views = document === null ? undefined : viewsOf.get(document)
    const canJoin = candidate.source.ranking.context.store.listing !== undefined
    if (document === null || chunkIndex === null || !views || !canJoin) {
      passages.push({ candidate, from })
      continue
    }
    if (!views.has(chunkIndex)) continue
    const owners = ownersOf.get(document) ?? new Map<number, Passage>()
    ownersOf.set(document, owners)
    releaseChunk(owners, chunkIndex)
    const range = freeRange(owners, chunkIndex, neighbors)
    const merged = fittingRange(views, { first: chunkIndex, last: chunkIndex }, range)
    for (let at = merged.first; at <= merged.last; at++) views.delete(at)
    const passage = { candidate, from, range, merged }
    for (let at = range.first; at <= range.last; at++) owners.set(at, passage)
    passages.push(passage)
  }
  return passages.map(({ candidate, from, range, merged }, index) => ({
    ...candidate,
    ...(merged && { range, merged }),
    changes: {
      ...candidate.changes,
      neighbors: { merged: merged ? lengthOf(merged) - 1 : 0, from, to: index + 1 },
    },
  }))
}

/** Returns the records of the candidates of each document by chunk index. */
function groupViews(candidates: readonly ShapedCandidate[]): Map<string, Map<number | null, RecordView>> {
  const byDocument = groupBy(candidates, documentKeyText)
  const groups = new Map<string, Map<number | null, RecordView>>()
  for (const [document, group] of byDocument)
    if (document !== null) groups.set(document, new Map(group.map(({ view }) => [view.chunkIndex, view])))
  return groups
}

/** Shortens the passage whose range contains a chunk, so that it ends before this chunk. */
function releaseChunk(owners: Map<number, Passage>, chunkIndex: number): void {
  const owner = owners.get(chunkIndex)
  if (!owner?.range || !owner.merged) return
  const { first, last } = owner.range
  const isAfter = chunkIndex > owner.merged.last
  const cut = isAfter ? { first: chunkIndex, last } : { first, last: chunkIndex }
  owner.range = isAfter ? { first, last: chunkIndex - 1 } : { first: chunkIndex + 1, last }
  for (let at = cut.first; at <= cut.last; at++) owners.delete(at)
}

/** Returns the range around a chunk that does not overlap other passages. */
function freeRange(owners: ReadonlyMap<number, Passage>, chunkIndex: number, neighbors: number): ChunkRange {
  let first = chunkIndex
  let last = chunkIndex
  while (first > Math.max(0, chunkIndex - neighbors) && !owners.has(first - 1)) first--
  while (last < chunkIndex + neighbors && !owners.has(last + 1)) last++
  return { first, last }
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
  { source, record, view, merged }: ShapedCandidate,
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
  const best = { first: view.chunkIndex!, last: view.chunkIndex! }
  const withMerged = fittingRange(byIndex, best, merged ?? best)
  const range = fittingRange(byIndex, withMerged, { first, last })
  const indexes = Array.from({ length: lengthOf(range) }, (_, offset) => range.first + offset)
  const text = joinText(indexes.map(index => byIndex.get(index)!))
  return { passage: { chunks: range, text }, charsRead }
}

/** Widens a range on both sides in turn, to existing chunks within the limits. */
function fittingRange(
  byIndex: ReadonlyMap<number | null, RecordView>,
  start: ChunkRange,
  within: ChunkRange,
): ChunkRange {
  let range = start
  let chars = 0
  for (let index = start.first; index <= start.last; index++) chars += byIndex.get(index)?.text?.length ?? 0
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
