import type { RecordLimit } from '../access/record-retention.ts'
import type { Pager } from '../storage/cursor.ts'
import type { AnyTable, RowStore } from '../storage/rows.ts'
import { tables } from '../storage/tables.ts'

/**
 * Returns a limit for each workspace that has more rows than its share, so that many rows of one workspace do not displace those
 * of others.
 *
 * @param table    table with the indexes `byOrdinal` and `byWorkspace`
 * @param rowsMax  maximum number of rows of all workspaces
 */
export async function limitsByWorkspace(
  { rows, pager }: { readonly rows: RowStore; readonly pager: Pager },
  table: AnyTable,
  rowsMax: number,
): Promise<RecordLimit[]> {
  if ((await rows.count(table, 'byOrdinal', [])) <= rowsMax) return []
  const counted: { list: RecordLimit['list']; count: number }[] = []
  for await (const workspaces of pager.slices(tables.workspaces, { index: 'byCreation', prefix: [] }))
    for (const { row } of workspaces) {
      const list = { index: 'byWorkspace', prefix: [row.workspaceId] }
      counted.push({ list, count: await rows.count(table, list.index, list.prefix) })
    }
  const max = fairShare(
    counted.map(({ count }) => count),
    rowsMax,
  )
  return counted.flatMap(({ list, count }) => (count > max ? [{ list, max }] : []))
}

/** Returns the highest limit of each count with which the sum of the limited counts is at most `total`. */
export function fairShare(counts: readonly number[], total: number): number {
  let left = total
  const ascending = counts.toSorted((a, b) => a - b)
  for (const [at, count] of ascending.entries()) {
    const share = Math.floor(left / (ascending.length - at))
    if (count > share) return share
    left -= count
  }
  return total
}
