import { compareCodePoints } from '../../base/compare-code-points.ts'
import { type KeyCondition, satisfiesOperator } from '../filter.ts'

export type RangeCondition = Extract<KeyCondition, { readonly kind: 'range' }>

/**
 * The bounds of range conditions on one key, which are all numbers or all strings. A value is compared with all of them in one
 * binary search, which returns a position. The result of each condition depends only on the position.
 */
export class RangeBounds {
  /** Bounds that numbers are compared with. Empty if the bounds are strings. */
  readonly #numbers: readonly number[]
  /** Bounds that strings are compared with, and numbers if the bounds are strings. */
  readonly #texts: readonly string[]
  readonly #firstTextPosition: number
  /** Position of values that satisfy no condition. */
  readonly #outside: number

  constructor(bounds: readonly (string | number)[]) {
    const numbers = bounds.filter(bound => typeof bound === 'number')
    this.#numbers = [...new Set(numbers)].sort(compareNumbers)
    this.#texts = [...new Set(bounds.map(String))].sort(compareCodePoints)
    this.#firstTextPosition = 2 * this.#numbers.length + 1
    this.#outside = this.#firstTextPosition + 2 * this.#texts.length + 1
  }

  positionOf(value: unknown): number {
    if (typeof value === 'number' && this.#numbers.length > 0)
      return positionAmong(this.#numbers, value, compareNumbers)
    if (typeof value !== 'number' && typeof value !== 'string') return this.#outside
    return this.#firstTextPosition + positionAmong(this.#texts, String(value), compareCodePoints)
  }

  /** Returns a list that contains 1 at each position whose values satisfy a condition with one of the bounds, and otherwise 0. */
  satisfied({ operator, bound }: RangeCondition): Uint8Array {
    const flags = new Uint8Array(this.#outside + 1)
    const numberPosition = this.positionOf(bound)
    const textPosition = this.positionOf(String(bound))
    for (let position = 0; position < this.#outside; position++) {
      const boundPosition = position < this.#firstTextPosition ? numberPosition : textPosition
      if (satisfiesOperator(operator, position - boundPosition)) flags[position] = 1
    }
    return flags
  }
}

function compareNumbers(a: number, b: number): number {
  return a - b
}

/** Returns 2i + 1 if a value equals bound i of an ascending list, and 2i if it is between the bounds i - 1 and i. */
function positionAmong<T>(ascending: readonly T[], value: T, compare: (a: T, b: T) => number): number {
  let [low, high] = [0, ascending.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    const difference = compare(value, ascending[middle]!)
    if (difference === 0) return 2 * middle + 1
    if (difference < 0) high = middle
    else low = middle + 1
  }
  return 2 * low
}
