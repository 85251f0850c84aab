import { formatCount } from './output.ts'

/** Maximum number of items to count beyond those shown. */
const countMax = 10_000

/**
 * Returns the first items of a list, and the total if some are left out. The API reports no totals, so the
 * rest is read and counted up to {@link countMax}.
 */
export async function takeFirst<T>(
  items: AsyncIterable<T> | Iterable<T>,
  limit: number,
): Promise<{ rows: T[]; total?: string }> {
  const rows: T[] = []
  let seen = 0
  for await (const item of items) {
    if (seen++ < limit) rows.push(item)
    else if (seen > limit + countMax) return { rows, total: `more than ${formatCount(seen - 1)}` }
  }
  return seen > limit ? { rows, total: formatCount(seen) } : { rows }
}

/** Counts the items of a list, up to {@link countMax}. */
export async function countItems(items: AsyncGenerator<unknown>): Promise<number> {
  const { total, rows } = await takeFirst(items, countMax)
  return total === undefined ? rows.length : countMax
}
