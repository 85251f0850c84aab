import type { RecordLimit } from '../../access/record-retention.ts'
import type { Pager } from '../../storage/cursor.ts'
import type { RowStore } from '../../storage/rows.ts'
import { tables } from '../../storage/tables.ts'

/**
 * Returns a limit for each workspace that has more searches than its share, so that many searches in one workspace do not
 * displace those of others.
 *
 * @param searchesMax  maximum number of searches of all workspaces
 */
export async function limitsByWorkspace(
  { rows, pager }: { readonly rows: RowStore; readonly pager: Pager },
  searchesMax: number,
): Promise<RecordLimit[]> {
  if ((await rows.count(tables.queryLog, 'byOrdinal', [])) <= searchesMax) return []
  const counted: { list: RecordLimit['list']; count: number }[] = []
  for await (const workspaces of pager.slices(tables.workspaces, { index: 'byCreation', prefix: [] }))
    for (const { row } of workspaces) {
      const list = { index: 'byWorkspace', prefix: [row.workspaceId] }
      counted.push({ list, count: await rows.count(tables.queryLog, list.index, list.prefix) })
    }
  const max = fairShare(
    counted.map(({ count }) => count),
    searchesMax,
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
