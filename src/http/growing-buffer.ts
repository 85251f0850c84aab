/**
 * Gathers the pieces of a body in one buffer, which grows as they arrive: memory for what a client only declares costs
 * garbage collections. A piece that is kept takes about 350 bytes besides its content,
 * so that a body of many tiny pieces would take far more memory than is counted for it.
 */
export class GrowingBuffer {
  readonly #sizeMax: number
  #bytes = Buffer.alloc(0)
  #size = 0

  /** @param sizeMax  in bytes; no more is allocated */
  constructor(sizeMax = Number.POSITIVE_INFINITY) {
    this.#sizeMax = sizeMax
  }

  /** Number of bytes gathered. */
  get size(): number {
    return this.#size
  }

  append(piece: Uint8Array): void {
    const size = this.#size + piece.length
    if (size > this.#bytes.length) this.#grow(size)
    this.#bytes.set(piece, this.#size)
    this.#size = size
  }

  /** Returns all bytes in memory of their own, which can be transferred to a thread, and starts anew. */
  take(): Buffer {
    const taken = this.#bytes.subarray(0, this.#size)
    this.#bytes = Buffer.alloc(0)
    this.#size = 0
    return taken
  }

  #grow(sizeMin: number): void {
    const size = Math.max(sizeMin, Math.min(2 * this.#bytes.length, this.#sizeMax))
    // Not a slice of the shared pool, so that it can be transferred to a thread.
    const larger = Buffer.allocUnsafeSlow(size)
    larger.set(this.#bytes.subarray(0, this.#size))
    this.#bytes = larger
  }
}
