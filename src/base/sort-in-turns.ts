import type { WorkPacer } from './work-pacer.ts'

/** Number of items to sort at once, which takes about 1 ms. */
const runLength = 1_000

/** Returns the items in order, as `toSorted` does, and lets other work run in the meantime. */
export async function sortInTurns<T>(
  items: readonly T[],
  compare: (left: T, right: T) => number,
  pacer: WorkPacer,
): Promise<T[]> {
  let runs: T[][] = []
  for (let start = 0; start < items.length; start += runLength) {
    runs.push(items.slice(start, start + runLength).sort(compare))
    await pacer.yieldIfDue()
  }
  while (runs.length > 1) {
    const merged: T[][] = []
    for (let at = 0; at < runs.length; at += 2)
      merged.push(await mergeInTurns(runs[at]!, runs[at + 1] ?? [], compare, pacer))
    runs = merged
  }
  return runs[0] ?? []
}

async function mergeInTurns<T>(
  left: readonly T[],
  right: readonly T[],
  compare: (left: T, right: T) => number,
  pacer: WorkPacer,
): Promise<T[]> {
  const merged: T[] = []
  let [leftAt, rightAt] = [0, 0]
  while (leftAt < left.length && rightAt < right.length) {
    const isLeft = compare(left[leftAt]!, right[rightAt]!) <= 0
    merged.push(isLeft ? left[leftAt++]! : right[rightAt++]!)
    if (merged.length % runLength === 0) await pacer.yieldIfDue()
  }
  return merged.concat(left.slice(leftAt), right.slice(rightAt))
}
