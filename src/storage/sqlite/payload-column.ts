import { once } from '../../base/once.ts'
import { type FilterValue, type KeyCondition, typeOf } from '../filter.ts'
import { RangeBounds, type RangeCondition } from './range-bounds.ts'

/** Estimated bytes of a distinct value besides its text: entries of a map and of a list. */
const VALUE_BYTES = 64
/** Represents every object. Conditions cannot distinguish objects, but an object is not a missing value. */
const ANY_OBJECT = {}

/** Returns the array if it is long enough. Otherwise, returns a copy of at least twice its length. */
export function withCapacity<T extends Uint32Array | Float64Array>(array: T, length: number): T {
  if (length <= array.length) return array
  const larger = new (array.constructor as new (length: number) => T)(Math.max(length, 2 * array.length, 64))
  larger.set(array as never)
  return larger
}

/**
 * The values of one payload key for a list of rows. A row is a 32-bit code, which is an index into the list of distinct
 * values, so a condition is evaluated once per distinct value.
 */
export class PayloadColumn {
  #codes = new Uint32Array(0)
  #rows = 0
  /** Distinct values by code: a scalar, an array without its objects, `ANY_OBJECT`, or undefined if the key is missing. */
  readonly #values: unknown[] = []
  /** Codes of scalars, of undefined, and of `ANY_OBJECT`. */
  readonly #codeOf = new Map<unknown, number>()
  /** Codes of arrays, by their JSON text. */
  readonly #codeOfArray = new Map<string, number>()
  #valueBytes = 0

  get bytes(): number {
    return this.#codes.byteLength + this.#valueBytes
  }

  /** Adds the value of the next row; undefined if the row does not have the key. */
  add(value: unknown): void {
    this.#codes = withCapacity(this.#codes, this.#rows + 1)
    this.#codes[this.#rows++] = Array.isArray(value) ? this.#arrayCode(value) : this.#scalarCode(value)
  }

  /**
   * Returns a function that returns a bitmap of the rows that satisfy one of the conditions. All conditions of a filter share
   * the comparisons with the distinct values.
   */
  matcher(conditions: readonly KeyCondition[]): (condition: KeyCondition) => Uint32Array {
    const ranges = conditions.filter(({ kind }) => kind === 'range') as RangeCondition[]
    const numberRanges = once(() =>
      this.#rangeMatcher(ranges.filter(({ bound }) => typeof bound === 'number')),
    )
    const textRanges = once(() => this.#rangeMatcher(ranges.filter(({ bound }) => typeof bound === 'string')))
    const arrays = once(() => this.#arraysWith(conditions))
    return condition => {
      switch (condition.kind) {
        case 'in':
          return this.#bitmap(this.#withOne(condition.values, arrays()))
        case 'all':
          return this.#bitmap(this.#withAll(condition.values, arrays()))
        case 'range':
          return this.#bitmap((typeof condition.bound === 'number' ? numberRanges : textRanges)()(condition))
        case 'type':
          return this.#bitmap(this.#flags(value => typeOf(value) === condition.type))
      }
    }
  }

  /** Returns a bitmap of the rows whose codes have a flag. */
  #bitmap(flags: Uint8Array): Uint32Array {
    const bitmap = new Uint32Array((this.#rows + 31) >>> 5)
    const codes = this.#codes
    for (let from = 0; from < this.#rows; from += 32) {
      const end = Math.min(from + 32, this.#rows)
      let bits = 0
      for (let row = from; row < end; row++) bits |= flags[codes[row]!]! << row
      bitmap[from >>> 5] = bits
    }
    return bitmap
  }

  #rangeMatcher(conditions: readonly RangeCondition[]): (condition: RangeCondition) => Uint8Array {
    const bounds = new RangeBounds(conditions.map(({ bound }) => bound))
    const positions = new Uint32Array(this.#values.length)
    for (let code = 0; code < positions.length; code++)
      positions[code] = bounds.positionOf(this.#values[code])
    return condition => {
      const satisfied = bounds.satisfied(condition)
      const flags = new Uint8Array(positions.length)
      for (let code = 0; code < flags.length; code++) flags[code] = satisfied[positions[code]!]!
      return flags
    }
  }

  /** Flags the distinct values that satisfy a predicate. */
  #flags(satisfies: (value: unknown, code: number) => boolean): Uint8Array {
    const flags = new Uint8Array(this.#values.length)
    for (let code = 0; code < flags.length; code++) if (satisfies(this.#values[code], code)) flags[code] = 1
    return flags
  }

  /** Returns the codes of the arrays that contain a value, by value, for all values of `in` and `all` conditions. */
  #arraysWith(conditions: readonly KeyCondition[]): ReadonlyMap<unknown, readonly number[]> {
    const arrays = new Map<unknown, number[]>()
    if (this.#codeOfArray.size === 0) return arrays
    for (const condition of conditions)
      if (condition.kind === 'in' || condition.kind === 'all')
        for (const value of condition.values) arrays.set(value, [])
    for (const code of this.#codeOfArray.values())
      for (const element of this.#values[code] as unknown[]) {
        const codes = arrays.get(element)
        if (codes && codes.at(-1) !== code) codes.push(code)
      }
    return arrays
  }

  #withOne(values: readonly FilterValue[], arrays: ReadonlyMap<unknown, readonly number[]>): Uint8Array {
    const flags = new Uint8Array(this.#values.length)
    for (const value of values) {
      const code = this.#codeOf.get(value)
      if (code !== undefined) flags[code] = 1
      for (const array of arrays.get(value) ?? []) flags[array] = 1
    }
    return flags
  }

  #withAll(values: readonly FilterValue[], arrays: ReadonlyMap<unknown, readonly number[]>): Uint8Array {
    const distinct = new Set(values)
    const counts = new Uint32Array(this.#values.length)
    for (const value of distinct) for (const array of arrays.get(value) ?? []) counts[array]!++
    return this.#flags((value, code) => counts[code] === distinct.size && Array.isArray(value))
  }

  #scalarCode(value: unknown): number {
    const key = typeof value === 'object' && value !== null ? ANY_OBJECT : value
    const code = this.#codeOf.get(key)
    if (code !== undefined) return code
    this.#codeOf.set(key, this.#values.length)
    return this.#addValue(key, typeof key === 'string' ? key.length : 0)
  }

  #arrayCode(array: readonly unknown[]): number {
    // Conditions compare elements with scalars only.
    const scalars = array.filter(element => typeof element !== 'object' || element === null)
    const text = JSON.stringify(scalars)
    const code = this.#codeOfArray.get(text)
    if (code !== undefined) return code
    this.#codeOfArray.set(text, this.#values.length)
    return this.#addValue(scalars, 2 * text.length + scalars.length * VALUE_BYTES)
  }

  #addValue(value: unknown, characters: number): number {
    this.#valueBytes += VALUE_BYTES + 2 * characters
    return this.#values.push(value) - 1
  }
}
