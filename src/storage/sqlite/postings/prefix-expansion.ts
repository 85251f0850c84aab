import type { SqliteConnection } from '../connection.ts'
import type { SegmentMask } from './row-masks.ts'
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

/** Returns the terms with a prefix that are in most visible records, best first. */
export function expandTermPrefix(
  connection: SqliteConnection,
  segments: readonly PostingSegmentRow[],
  masks: readonly SegmentMask[],
  { prefix, limit }: { prefix: string; limit: number },
): ExpandedTerm[] {
  const start = prefixKey(prefix)
  const maskOf = new Map(segments.map(({ id }, at) => [id, masks[at]!]))
  const cursors = segments
    .filter(({ id }) => maskOf.get(id)!.records > 0)
    .map(({ id }) => new TermCursor(connection, id, start))
  const found: { key: string; records: number }[] = []
  let bytes = 0
  for (const { term: key, parts } of mergeTerms(cursors)) {
    if (!key.startsWith(start) || bytes > EXPANSION_BYTES_MAX) break
    let records = 0
    for (const part of parts) {
      bytes += part.postings.postingsBytes
      records += countSlots(part, maskOf.get(part.segment)!.slots)
    }
    if (records > 0) found.push({ key, records })
  }
  return found
    .sort((a, b) => b.records - a.records || (a.key < b.key ? -1 : 1))
    .slice(0, limit)
    .map(({ key, records }) => ({ term: termOfKey(key), records }))
}

function countSlots({ postings }: TermCursor, mask: Uint8Array | undefined): number {
  if (!mask) return postings.count
  const cursor = postings.postings()
  let records = 0
  while (cursor.next()) records += mask[cursor.slot] ?? 0
  return records
}
