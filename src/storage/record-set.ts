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

  get bytes(): number {
    return this.ascending.byteLength
  }

  has(record: number): boolean {
    return indexOfSorted(this.ascending, record) >= 0
  }

  [Symbol.iterator](): Iterator<number> {
    return this.ascending.values()
  }
}

/** Record numbers as a bitmap of their positions in a sorted list, which several sets share. */
export class SelectedRecords implements RecordSet {
  readonly size: number
  readonly #all: Float64Array
  readonly #bitmap: Uint32Array
  /** Position of the record that was looked up last. */
  #lastPosition = -1

  /**
   * @param all     sorted list of distinct numbers; it must not change
   * @param bitmap  one bit for each number in the list
   * @param size    number of bits that are set
   */
  constructor(all: Float64Array, bitmap: Uint32Array, size: number) {
    this.#all = all
    this.#bitmap = bitmap
    this.size = size
  }

  /** Bytes without the shared list. */
  get bytes(): number {
    return this.#bitmap.byteLength
  }

  get ascending(): Float64Array {
    const records = new Float64Array(this.size)
    let at = 0
    for (let word = 0; word < this.#bitmap.length; word++)
      for (let bits = this.#bitmap[word]!; bits !== 0; bits &= bits - 1)
        records[at++] = this.#all[word * 32 + 31 - Math.clz32(bits & -bits)]!
    return records
  }

  /** Takes constant time if the record follows the one of the previous call in the shared list. */
  has(record: number): boolean {
    const next = this.#lastPosition + 1
    const position = this.#all[next] === record ? next : indexOfSorted(this.#all, record)
    if (position < 0) return false
    this.#lastPosition = position
    return ((this.#bitmap[position >>> 5]! >>> (position & 31)) & 1) === 1
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
