import { limits } from '../../contract/limits.ts'
import type { Metric } from '../content.ts'
import { createScanMemory, openKernels, PAGE_BYTES, type ScanKernels, type ScanModule } from './module.ts'

/** Floats per iteration of the kernels' inner loop. Rows are padded with zeros to a multiple of it. */
const LANES = 4
/** Maximum number of rows per kernel call. */
const BATCH_ROWS = 64

/**
 * Computes exact scores of vectors for one query.
 *
 * Scores are computed in double precision from 32-bit floats. The score of a vector depends only on the vector and on
 * the query: it is identical to the last bit in every batch.
 *
 * Layout of the linear memory: the query as f64, BATCH_ROWS results, then the rows; see `scan.wat`. A spare row after
 * the last one is used to compute the norm of the query.
 */
export class ExactScorer {
  readonly #metric: Metric
  readonly #dimension: number
  readonly #strideBytes: number
  readonly #outOffset: number
  readonly #rowsOffset: number
  readonly #kernels: ScanKernels
  readonly #floats: Float32Array
  readonly #results: Float64Array
  readonly #query: Float64Array
  #querySquare = 0

  /**
   * @param dimension  1 to `limits.vectorLength`
   * @throws RangeError  the dimension is out of range
   */
  constructor(module: ScanModule, dimension: number, metric: Metric) {
    requireDimension(dimension)
    const padded = Math.ceil(dimension / LANES) * LANES
    this.#metric = metric
    this.#dimension = dimension
    this.#strideBytes = padded * 4
    this.#outOffset = padded * 8
    this.#rowsOffset = this.#outOffset + BATCH_ROWS * 8
    const size = this.#rowsOffset + (BATCH_ROWS + 1) * this.#strideBytes
    const memory = createScanMemory(module, Math.ceil(size / PAGE_BYTES))
    this.#kernels = openKernels(module, memory)
    this.#floats = new Float32Array(memory.buffer)
    this.#query = new Float64Array(memory.buffer, 0, dimension)
    this.#results = new Float64Array(memory.buffer, this.#outOffset, BATCH_ROWS)
  }

  /**
   * Sets the query of later scores.
   *
   * @throws RangeError  the query has the wrong length
   */
  setQuery(query: Float32Array): void {
    requireLength(query, this.#dimension)
    // Computes the norm of the query like that of a row, so that the cosine of equal vectors is exactly 1.
    this.#querySquare = this.squaredNorm(query)
    this.#query.set(query)
  }

  /** Returns the squared Euclidean norm of a vector. */
  squaredNorm(vector: Float32Array): number {
    this.#writeRow(vector, BATCH_ROWS)
    return this.#squaredNormOf(BATCH_ROWS)
  }

  /**
   * Returns the score of each vector: depending on the metric, the cosine in [-1, 1] (0 if either vector is zero), the
   * dot product, or 1 / (1 + Euclidean distance).
   *
   * @throws RangeError  a vector has the wrong length
   */
  scores(vectors: readonly Float32Array[]): number[] {
    const scores: number[] = []
    const kernel = this.#metric === 'euclidean' ? this.#kernels.squaredDistance : this.#kernels.dot
    const score = scoreFunctions[this.#metric]
    for (let from = 0; from < vectors.length; from += BATCH_ROWS) {
      const batch = vectors.slice(from, from + BATCH_ROWS)
      for (const [row, vector] of batch.entries()) this.#writeRow(vector, row)
      kernel(0, this.#rowsOffset, 0, batch.length, this.#strideBytes, this.#outOffset)
      for (let row = 0; row < batch.length; row++) {
        const rowSquare = this.#metric === 'cosine' ? this.#squaredNormOf(row) : 0
        scores.push(score(this.#results[row]!, this.#querySquare, rowSquare))
      }
    }
    return scores
  }

  #writeRow(vector: Float32Array, row: number): void {
    requireLength(vector, this.#dimension)
    this.#floats.set(vector, (this.#rowsOffset + row * this.#strideBytes) / 4)
  }

  #squaredNormOf(row: number): number {
    return this.#kernels.squaredNorm(this.#rowsOffset + row * this.#strideBytes, this.#strideBytes)
  }
}

/** @throws RangeError  the dimension is not between 1 and `limits.vectorLength` */
export function requireDimension(dimension: number): void {
  if (!Number.isInteger(dimension) || dimension < 1 || dimension > limits.vectorLength)
    throw new RangeError(`dimension ${dimension} is not between 1 and ${limits.vectorLength}`)
}

/** @throws RangeError  the vector does not have `dimension` floats */
export function requireLength(vector: Float32Array, dimension: number): void {
  if (vector.length !== dimension)
    throw new RangeError(`the vector has ${vector.length} floats instead of ${dimension}`)
}

/** Functions that compute a score from the result of a kernel and the squared norms of the query and the row. */
const scoreFunctions: Record<Metric, (result: number, querySquare: number, rowSquare: number) => number> = {
  cosine: (result, querySquare, rowSquare) => {
    // The smallest square of a nonzero float is near 2e-90, so the product is zero only if a vector is zero.
    const norms = Math.sqrt(querySquare * rowSquare)
    return norms === 0 ? 0 : Math.max(-1, Math.min(1, result / norms))
  },
  dot: result => result,
  euclidean: result => 1 / (1 + Math.sqrt(result)),
}
