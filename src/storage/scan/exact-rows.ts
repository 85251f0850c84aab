/** Number of rows per chunk. Unused rows of a chunk take no physical memory until they are written. */
const CHUNK_ROWS = 256

interface Chunk {
  readonly numbers: Float32Array
  /** 1 for each row that is known. */
  readonly known: Uint8Array
}

/** A cache of exact vectors by slot. */
export class ExactRows {
  readonly #dimension: number
  readonly #chunks: (Chunk | undefined)[] = []
  #bytes = 0

  constructor(dimension: number) {
    this.#dimension = dimension
  }

  /** Allocated bytes, including rows that are not known. */
  get bytes(): number {
    return this.#bytes
  }

  get(slot: number): Float32Array | undefined {
    const chunk = this.#chunks[Math.floor(slot / CHUNK_ROWS)]
    const at = slot % CHUNK_ROWS
    return chunk?.known[at] === 1
      ? chunk.numbers.subarray(at * this.#dimension, (at + 1) * this.#dimension)
      : undefined
  }

  set(slot: number, vector: Float32Array): void {
    const number = Math.floor(slot / CHUNK_ROWS)
    const chunk = this.#chunks[number] ?? this.#allocate(number)
    const at = slot % CHUNK_ROWS
    chunk.numbers.set(vector, at * this.#dimension)
    chunk.known[at] = 1
  }

  delete(slot: number): void {
    const chunk = this.#chunks[Math.floor(slot / CHUNK_ROWS)]
    if (chunk) chunk.known[slot % CHUNK_ROWS] = 0
  }

  /** Moves a row to another slot, and overwrites the row there. */
  move(from: number, to: number): void {
    const vector = this.get(from)
    if (vector) this.set(to, vector)
    else this.delete(to)
    this.delete(from)
  }

  #allocate(number: number): Chunk {
    const chunk = {
      numbers: new Float32Array(CHUNK_ROWS * this.#dimension),
      known: new Uint8Array(CHUNK_ROWS),
    }
    this.#chunks[number] = chunk
    this.#bytes += chunk.numbers.byteLength + chunk.known.byteLength
    return chunk
  }
}
