import { RECORD_SPAN_MAX, SEGMENT_SLOTS_MAX } from './schema.ts'
import type { PostingSegmentRow } from './segment-rows.ts'

/** Minimum number of segments to merge, and ratio of the upper to the lower bound of a size class. */
const MERGE_SEGMENTS_MIN = 6
const MERGE_SEGMENTS_MAX = 32
/** Share of deleted slots above which a segment is rewritten. */
const DELETED_SHARE_MAX = 0.2

/**
 * Returns adjacent segments to merge into one; undefined if no merge is due.
 *
 * Segments are of one size class if their numbers of records are between the same powers of 6. A merge can include smaller
 * segments, but no segment with more than half of the merged records. Each time a record is rewritten, its segment
 * therefore becomes at least twice as large. The number of segments stays below about 30, plus one per 32,768 records.
 *
 * @param segments  live segments by ascending records
 */
export function planMerge(
  segments: readonly PostingSegmentRow[],
  slotsMax = SEGMENT_SLOTS_MAX,
): PostingSegmentRow[] | undefined {
  const sparse = segments.find(
    ({ slots, deleted }) => deleted > slots * DELETED_SHARE_MAX && slots - deleted <= slotsMax,
  )
  if (sparse) return [sparse]
  const classes = segments.map(segment => sizeClass(recordsOf(segment)))
  for (const sizeMax of [...new Set(classes)].sort((a, b) => a - b)) {
    for (let start = 0; start < segments.length; start++) {
      if (classes[start]! > sizeMax) continue
      const { end, isFull } = runFrom(segments, start, {
        isIncluded: at => classes[at]! <= sizeMax && at - start < MERGE_SEGMENTS_MAX,
        slotsMax,
      })
      const run = segments.slice(start, end)
      if (run.length >= (isFull ? 2 : MERGE_SEGMENTS_MIN) && isBalanced(run)) return run
    }
  }
  return undefined
}

/** Records of an index that a compaction has yet to handle. */
export interface CompactionRange {
  /** Last record that was handled. */
  readonly after: number
  /** Last record to handle. */
  readonly through: number
}

/**
 * Returns the next segments of a range to rewrite as one segment: several adjacent ones, or one with deleted records.
 * Returns undefined if there are none.
 *
 * @param segments  live segments by ascending records
 */
export function planCompaction(
  segments: readonly PostingSegmentRow[],
  { after, through }: CompactionRange,
  slotsMax = SEGMENT_SLOTS_MAX,
): PostingSegmentRow[] | undefined {
  const isIncluded = (at: number) => segments[at]!.firstRecord <= through
  let start = segments.findIndex(({ firstRecord }) => firstRecord > after)
  while (start >= 0 && start < segments.length && isIncluded(start)) {
    const { end } = runFrom(segments, start, { isIncluded, slotsMax })
    const run = segments.slice(start, end)
    if (run.length > 1 || run[0]!.deleted > 0) return run
    start = end
  }
  return undefined
}

/** Returns the end of a run, and whether the next segment would belong to it but does not fit. */
function runFrom(
  segments: readonly PostingSegmentRow[],
  start: number,
  { isIncluded, slotsMax }: { isIncluded: (at: number) => boolean; slotsMax: number },
): { end: number; isFull: boolean } {
  let records = 0
  let end = start
  while (end < segments.length && isIncluded(end)) {
    const segment = segments[end]!
    records += recordsOf(segment)
    const span = segment.lastRecord - segments[start]!.firstRecord
    if (records > slotsMax || span > RECORD_SPAN_MAX) return { end, isFull: true }
    end++
  }
  return { end, isFull: false }
}

function isBalanced(run: readonly PostingSegmentRow[]): boolean {
  const sizes = run.map(recordsOf)
  return 2 * Math.max(...sizes) <= sizes.reduce((sum, size) => sum + size, 0)
}

function recordsOf({ slots, deleted }: PostingSegmentRow): number {
  return slots - deleted
}

function sizeClass(records: number): number {
  return Math.floor(Math.log(Math.max(records, 1)) / Math.log(MERGE_SEGMENTS_MIN))
}
