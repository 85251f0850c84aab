/** A set of record numbers. */
export interface RecordSet extends Iterable<number> {
  readonly size: number
  has(record: number): boolean
}

/** Record numbers as a sorted list of 8 bytes each. */
export class SortedRecords implements RecordSet {
  readonly ascending: Float64Array

  constructor(ascending: Float64Array) {
    this.ascending = ascending
  }

  get size(): number {
    return this.ascending.length
  }

  has(record: number): boolean {
    return indexOfSorted(this.ascending, record) >= 0
  }

  [Symbol.iterator](): Iterator<number> {
    return this.ascending.values()
  }
}

/** Returns the index of a number in a sorted list of distinct numbers; -1 if it is missing. */
export function indexOfSorted(ascending: ArrayLike<number>, wanted: number): number {
  const index = lowerBound(ascending, wanted)
  return ascending[index] === wanted ? index : -1
}

/** Returns the index of the first number that is not below `wanted` in a sorted list; the length if all are below. */
export function lowerBound(ascending: ArrayLike<number>, wanted: number): number {
  let [low, high] = [0, ascending.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if (ascending[middle]! < wanted) low = middle + 1
    else high = middle
  }
  return low
}
