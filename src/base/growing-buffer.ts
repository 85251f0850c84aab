/**
 * Collects chunks in one buffer, which grows as they arrive. If the declared size were allocated up front, clients that
 * declare a large size could cause garbage collections. If the chunks were stored separately, each would take about 350
 * additional bytes, which the size limits would not count.
 */
export class GrowingBuffer {
  readonly #sizeMax: number
  #bytes = new Uint8Array(0)
  #size = 0

  /** @param sizeMax  maximum allocation, in bytes */
  constructor(sizeMax = Number.POSITIVE_INFINITY) {
    this.#sizeMax = sizeMax
  }

  /** Number of collected bytes. */
  get size(): number {
    return this.#size
  }

  append(piece: Uint8Array): void {
    const size = this.#size + piece.length
    if (size > this.#bytes.length) this.#grow(size)
    this.#bytes.set(piece, this.#size)
    this.#size = size
  }

  /**
   * Returns all bytes and resets the buffer. The bytes are not shared with other data, so they can be transferred to a
   * thread.
   */
  take(): Uint8Array<ArrayBuffer> {
    const bytes = this.#bytes.subarray(0, this.#size)
    this.#bytes = new Uint8Array(0)
    this.#size = 0
    return bytes
  }

  #grow(sizeMin: number): void {
    const size = Math.max(sizeMin, Math.min(2 * this.#bytes.length, this.#sizeMax))
    const newBytes = new Uint8Array(size)
    newBytes.set(this.#bytes.subarray(0, this.#size))
    this.#bytes = newBytes
  }
}
