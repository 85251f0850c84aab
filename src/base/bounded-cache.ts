/**
 * A cache in memory of bounded size. When it is full, it drops the entries that were not used since it was last half
 * full.
 */
export class BoundedCache<K, V> {
  readonly #halfMax: number
  #recent = new Map<K, V>()
  #earlier = new Map<K, V>()

  /** @param sizeMax  maximum number of entries */
  constructor(sizeMax: number) {
    this.#halfMax = sizeMax / 2
  }

  get(key: K): V | undefined {
    const value = this.#recent.get(key)
    if (value !== undefined) return value
    const earlier = this.#earlier.get(key)
    if (earlier !== undefined) this.set(key, earlier)
    return earlier
  }

  set(key: K, value: V): void {
    if (this.#recent.size >= this.#halfMax) {
      this.#earlier = this.#recent
      this.#recent = new Map()
    }
    this.#recent.set(key, value)
  }
}

/**
 * Copies a part of a text, to cache it. V8 keeps the whole text in memory as long as a part of 13 units or more is used.
 */
export function copyPart(part: string): string {
  return part.length < 13 ? part : Buffer.from(part, 'utf16le').toString('utf16le')
}
