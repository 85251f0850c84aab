import type { SqliteConnection } from '../connection.ts'
import type { SegmentMask } from './record-masks.ts'
import type { PostingSegmentRow } from './segment-rows.ts'
import { mergeTerms, TermCursor } from './term-cursor.ts'
import { prefixKey, termOfKey } from './term-key.ts'

/** Maximum bytes of postings that an expansion reads. */
const EXPANSION_BYTES_MAX = 2 * 1024 * 1024

export interface ExpandedTerm {
  readonly term: string
  /** Number of visible records that contain the term. */
  readonly records: number
}

/** Returns the terms with a prefix, those in the largest number of visible records first. */
export function expandTermPrefix(
  connection: SqliteConnection,
  segments: readonly PostingSegmentRow[],
  masks: readonly SegmentMask[],
  { prefix, limit }: { prefix: string; limit: number },
): ExpandedTerm[] {
  const start = prefixKey(prefix)
  const found: ExpandedKey[] = []
  for (const expanded of visibleKeys(connection, segments, masks, start)) {
    if (!expanded.key.startsWith(start)) break
    if (expanded.records > 0) found.push(expanded)
  }
  return found
    .sort((a, b) => b.records - a.records || (a.key < b.key ? -1 : 1))
    .slice(0, limit)
    .map(toTerm)
}

/** Returns terms of segments in ascending order. */
export function listSegmentTerms(
  connection: SqliteConnection,
  segments: readonly PostingSegmentRow[],
  { from, limit }: { from: string; limit: number },
): string[] {
  const start = prefixKey(from)
  const terms: string[] = []
  for (const { term } of mergeTerms(segments.map(({ id }) => new TermCursor(connection, id, start)))) {
    if (terms.length === limit) break
    terms.push(termOfKey(term))
  }
  return terms
}

interface ExpandedKey {
  readonly key: string
  readonly records: number
}

function toTerm({ key, records }: ExpandedKey): ExpandedTerm {
  return { term: termOfKey(key), records }
}

/**
 * Yields stored terms in ascending order, each with the number of visible records that contain it. Stops after reading
 * more than {@link EXPANSION_BYTES_MAX}.
 */
function* visibleKeys(
  connection: SqliteConnection,
  segments: readonly PostingSegmentRow[],
  masks: readonly SegmentMask[],
  start: string,
): Generator<ExpandedKey, void, undefined> {
  const maskOf = new Map(segments.map(({ id }, at) => [id, masks[at]!]))
  const cursors = segments
    .filter(({ id }) => maskOf.get(id)!.records > 0)
    .map(({ id }) => new TermCursor(connection, id, start))
  let bytes = 0
  for (const { term: key, parts } of mergeTerms(cursors)) {
    if (bytes > EXPANSION_BYTES_MAX) return
    let records = 0
    for (const part of parts) {
      bytes += part.block.postingsBytes
      records += countSlots(part, maskOf.get(part.segment)!.slots)
    }
    yield { key, records }
  }
}

function countSlots({ block }: TermCursor, mask: Uint8Array | undefined): number {
  if (!mask) return block.count
  const cursor = block.openPostings()
  let records = 0
  while (cursor.next()) records += mask[cursor.slot] ?? 0
  return records
}
