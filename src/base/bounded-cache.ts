/**
 * A cache in memory of bounded size. When it is full, it drops the entries that were not used since it was last half
 * full. Values must not be undefined.
 */
export class BoundedCache<K, V> {
  readonly #halfMax: number
  readonly #sizeOf: (value: V) => number
  #recent = new Map<K, V>()
  #recentSize = 0
  #earlier = new Map<K, V>()

  /**
   * @param sizeMax  maximum total size of the values
   * @param sizeOf   returns the size of a value; by default, each value has the size 1
   */
  constructor(sizeMax: number, sizeOf: (value: V) => number = () => 1) {
    this.#halfMax = sizeMax / 2
    this.#sizeOf = sizeOf
  }

  get(key: K): V | undefined {
    const value = this.#recent.get(key)
    if (value !== undefined) return value
    const earlier = this.#earlier.get(key)
    if (earlier !== undefined) this.set(key, earlier)
    return earlier
  }

  set(key: K, value: V): void {
    const size = this.#sizeOf(value)
    if (this.#recentSize + size > this.#halfMax) {
      this.#earlier = this.#recent
      this.#recent = new Map()
      this.#recentSize = 0
    }
    this.#recent.set(key, value)
    this.#recentSize += size
  }
}

/**
 * Copies a part of a text, to cache it. V8 keeps the whole text in memory as long as a part of 13 units or more is used.
 */
export function copyPart(part: string): string {
  return part.length < 13 ? part : Buffer.from(part, 'utf16le').toString('utf16le')
}
