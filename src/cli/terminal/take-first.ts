import { formatCount } from './output.ts'

/** Maximum number of items to count in addition to the returned ones. */
const countMax = 10_000

/**
 * Returns the first items of a list, and the total number if there are more. The API does not return totals, so the
 * other items are read and counted, up to {@link countMax}.
 */
export async function takeFirst<T>(
  items: AsyncIterable<T> | Iterable<T>,
  limit: number,
): Promise<{ rows: T[]; total?: string }> {
  const rows: T[] = []
  let count = 0
  for await (const item of items) {
    if (count++ < limit) rows.push(item)
    else if (count > limit + countMax) return { rows, total: `more than ${formatCount(count - 1)}` }
  }
  return count > limit ? { rows, total: formatCount(count) } : { rows }
}

/** Counts the items of a list, up to {@link countMax}. */
export async function countItems(items: AsyncGenerator<unknown>): Promise<number> {
  const { total, rows } = await takeFirst(items, countMax)
  return total === undefined ? rows.length : countMax
}
