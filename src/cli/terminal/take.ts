import { count } from './output.ts'

/** Items counted beyond those shown; more are "more than". */
const countedMax = 10_000

/**
 * The first items of a list, and of how many they are when some were left out.
 *
 * The API tells no totals, so that the rest is read and counted, up to a bound.
 */
export async function take<T>(
  items: AsyncIterable<T> | Iterable<T>,
  limit: number,
): Promise<{ rows: T[]; total?: string }> {
  const rows: T[] = []
  let seen = 0
  for await (const item of items) {
    if (seen++ < limit) rows.push(item)
    else if (seen > limit + countedMax) return { rows, total: `more than ${count(seen - 1)}` }
  }
  return seen > limit ? { rows, total: count(seen) } : { rows }
}

/** How many items a list has, in words, counted up to a bound. */
export async function countItems(items: AsyncGenerator<unknown>): Promise<number> {
  const { total, rows } = await take(items, countedMax)
  return total === undefined ? rows.length : countedMax
}
