import { createValueMatcher, type KeyCondition } from '../filter.ts'

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

  /** Returns a bitmap of the rows that satisfy a condition. */
  matching(condition: KeyCondition): Uint32Array {
    const matches = createValueMatcher(condition)
    const values = this.#values
    const flags = new Uint8Array(values.length)
    for (let code = 0; code < flags.length; code++) if (matches(values[code])) flags[code] = 1
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
