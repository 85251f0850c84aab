import type { SqliteConnection } from '../connection.ts'
import { TERM_COUNT_MAX } from './posting-list.ts'
import {
  hasBit,
  listLiveSegments,
  type PostingSegmentRow,
  readDeletions,
  readLengths,
  readRecords,
} from './segment-rows.ts'
import { TermCursor } from './term-cursor.ts'

/**
 * Returns the faults of all posting indexes, one line each; empty if they are sound. Reads all postings. Must run inside a
 * transaction if other connections may write.
 */
export function findPostingFaults(connection: SqliteConnection): string[] {
  const indexes = connection
    .prepare<{ id: number; lastRecord: number }>('SELECT id, last_record AS lastRecord FROM posting_index')
    .all()
  return [...findOrphanedRows(connection), ...indexes.flatMap(index => findIndexFaults(connection, index))]
}

/** Returns the records of an index that are not deleted, in ascending order. */
export function* indexedRecords(connection: SqliteConnection, index: number): Generator<number> {
  for (const segment of listLiveSegments(connection, index)) {
    const deletions = readDeletions(connection, segment)
    for (const [slot, offset] of readRecords(connection, segment).entries())
      if (!deletions || !hasBit(deletions, slot)) yield segment.firstRecord + offset
  }
}

function findOrphanedRows(connection: SqliteConnection): string[] {
  const tables = ['posting_slots', 'posting_deletions', 'posting_classes', 'posting_block']
  const withoutSegment = tables.map(table => ({
    rows: `${table} without a segment`,
    sql: `SELECT count(*) AS n FROM ${table} WHERE segment NOT IN (SELECT id FROM posting_segment)`,
  }))
  const withoutIndex = {
    rows: 'posting_segment without an index',
    sql: `SELECT count(*) AS n FROM posting_segment
      WHERE state <> 2 AND posting_index NOT IN (SELECT id FROM posting_index)`,
  }
  return [...withoutSegment, withoutIndex].flatMap(({ rows, sql }) => {
    const { n } = connection.prepare<{ n: number }>(sql).get()!
    return n > 0 ? [`${n} rows of ${rows}`] : []
  })
}

function findIndexFaults(
  connection: SqliteConnection,
  { id, lastRecord }: { id: number; lastRecord: number },
): string[] {
  const faults: string[] = []
  let last = 0
  for (const segment of listLiveSegments(connection, id)) {
    if (segment.firstRecord <= last || segment.lastRecord > lastRecord)
      faults.push(
        `segment ${segment.id} overlaps the previous segment, or extends beyond the last record of its index`,
      )
    last = segment.lastRecord
    try {
      faults.push(...findSegmentFaults(connection, segment).map(fault => `segment ${segment.id} ${fault}`))
    } catch (error) {
      faults.push((error as Error).message)
    }
  }
  return faults
}

/** @throws control_plane_unavailable  a part of the segment cannot be read */
function findSegmentFaults(connection: SqliteConnection, segment: PostingSegmentRow): string[] {
  const faults: string[] = []
  const records = readRecords(connection, segment)
  const isAscending = records.every((record, slot) => slot === 0 || record > records[slot - 1]!)
  if (!isAscending || segment.firstRecord + (records.at(-1) ?? 0) > segment.lastRecord)
    faults.push('has records out of order')
  const deletions = readDeletions(connection, segment)
  const deleted = deletions ? records.filter((_, slot) => hasBit(deletions, slot)).length : 0
  if (deleted !== segment.deleted) faults.push('has a wrong number of deletions')
  const { lengths, hasHighCount, isSorted } = sumPostings(connection, segment)
  if (!isSorted) faults.push('has terms out of order')
  const stored = readLengths(connection, segment)
  // Counts have a maximum, so the counts of a record with a maximum count can add up to less than its length.
  if (!hasHighCount && lengths.some((length, slot) => length !== stored[slot]))
    faults.push('has postings that differ from its lengths')
  return faults
}

/** Adds up the counts of each slot over all terms. */
function sumPostings(connection: SqliteConnection, segment: PostingSegmentRow) {
  const lengths = new Uint32Array(segment.slots)
  let [hasHighCount, isSorted] = [false, true]
  const terms = new TermCursor(connection, segment.id)
  for (let previous: string | undefined; terms.term !== undefined; terms.next()) {
    if (previous !== undefined && terms.term <= previous) isSorted = false
    previous = terms.term
    const cursor = terms.block.openPostings()
    while (cursor.next()) {
      if (Math.max(cursor.textCount, cursor.titleCount) === TERM_COUNT_MAX) hasHighCount = true
      lengths[cursor.slot]! += cursor.textCount + cursor.titleCount
    }
  }
  return { lengths, hasHighCount, isSorted }
}
