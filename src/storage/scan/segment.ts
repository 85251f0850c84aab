import { limits } from '../../contract/limits.ts'
import type { Metric, ScoredRecord } from '../content.ts'
import {
  MAX_PAGES,
  openScan,
  PAGE_BYTES,
  type ScanKernels,
  type ScanMemory,
  type ScanModule,
} from './module.ts'

/** Rows read from disk: `vectors` contains one vector per record, one after another. */
export interface VectorBlock {
  records: ArrayLike<number>
  vectors: Float32Array
}

/** A search over rows that are read from disk. */
export interface BlockQuery {
  dimension: number
  metric: Metric
  query: Float32Array
  k: number
  allowed?: ReadonlySet<number> | undefined
}

/** Floats per iteration of the kernels' inner loop. Rows are padded with zeros to a multiple of it. */
const LANES = 4
/** Rows per kernel call. Their results take 32 KiB, which fits into the L1 cache. */
const BATCH_ROWS = 4_096
/** If less than this share of the rows is allowed, reading only these rows is faster than scanning all rows. */
const GATHER_SHARE_MAX = 0.25
/** Estimated bytes that a row takes outside of the linear memory: record, squared norm and map entry. */
const ROW_OVERHEAD_BYTES = 64
/** Approximate maximum bytes of rows that `scanBlocks` keeps in memory at a time. */
const WINDOW_BYTES = 4 * 1024 * 1024

/**
 * Vectors in memory, with exact nearest-neighbor search.
 *
 * Scores are computed in double precision from the stored floats, without quantization or approximation. A slot
 * is the position of a row. Slots are dense: when a row is removed, the last row moves into its slot.
 *
 * Layout of the linear memory: the query as f64, BATCH_ROWS results, BATCH_ROWS slot numbers, then the rows;
 * see `scan.wat`. A spare row after the last one is used to compute the norm of the query.
 */
export class Segment {
  readonly #dimension: number
  readonly #metric: Metric
  readonly #strideBytes: number
  readonly #outOffset: number
  readonly #slotsOffset: number
  readonly #rowsOffset: number
  readonly #memory: ScanMemory
  readonly #kernels: ScanKernels
  #views: Views
  readonly #records: number[] = []
  readonly #squares: number[] = []
  readonly #slotOf = new Map<number, number>()

  /**
   * Creates an empty segment.
   *
   * @param dimension  1 to `limits.vectorLength`
   * @throws RangeError  the dimension is out of range
   */
  constructor(module: ScanModule, dimension: number, metric: Metric) {
    if (!Number.isInteger(dimension) || dimension < 1 || dimension > limits.vectorLength)
      throw new RangeError(`dimension ${dimension} is not between 1 and ${limits.vectorLength}`)
    const padded = Math.ceil(dimension / LANES) * LANES
    this.#dimension = dimension
    this.#metric = metric
    this.#strideBytes = padded * 4
    this.#outOffset = padded * 8
    this.#slotsOffset = this.#outOffset + BATCH_ROWS * 8
    this.#rowsOffset = this.#slotsOffset + BATCH_ROWS * 4
    const { memory, kernels } = openScan(module, this.#pagesFor(0))
    this.#memory = memory
    this.#kernels = kernels
    this.#views = viewsOf(memory)
  }

  /** Number of rows. */
  get size(): number {
    return this.#records.length
  }

  /** Allocated bytes, including unused capacity. The memory never shrinks. */
  get bytes(): number {
    return this.#memory.buffer.byteLength + this.size * ROW_OVERHEAD_BYTES
  }

  /**
   * Allocates memory for a total of `rows` rows. Call it before loading a known number of rows; otherwise `append`
   * doubles the memory whenever it is full.
   *
   * @throws RangeError  the rows need more than the 4 GiB that one segment can address
   */
  reserve(rows: number): void {
    this.#growTo(this.#pagesFor(rows))
  }

  /**
   * Adds the vector of a record, or replaces it.
   *
   * @param vector  finite, with the dimension of the segment; the segment keeps a copy
   * @throws RangeError  the vector has the wrong length, or the segment is full at 4 GiB
   */
  append(record: number, vector: Float32Array): void {
    this.#requireLength(vector)
    const slot = this.#slotOf.get(record) ?? this.size
    const needed = this.#pagesFor(slot + 1)
    if (needed > this.#pages) this.#growTo(Math.max(needed, Math.min(this.#pages * 2, MAX_PAGES)))
    this.#squares[slot] = this.#writeRow(vector, slot)
    this.#records[slot] = record
    this.#slotOf.set(record, slot)
  }

  /** Removes a record; returns false if it is not in the segment. */
  remove(record: number): boolean {
    const slot = this.#slotOf.get(record)
    if (slot === undefined) return false
    this.#slotOf.delete(record)
    const lastRecord = this.#records.pop()!
    const lastSquare = this.#squares.pop()!
    if (lastRecord !== record) {
      const last = this.#rowOffset(this.size) / 4
      this.#views.floats.copyWithin(this.#rowOffset(slot) / 4, last, last + this.#dimension)
      this.#records[slot] = lastRecord
      this.#squares[slot] = lastSquare
      this.#slotOf.set(lastRecord, slot)
    }
    return true
  }

  /** Removes all records, but does not free the memory. */
  clear(): void {
    this.#records.length = 0
    this.#squares.length = 0
    this.#slotOf.clear()
  }

  /**
   * Returns the `k` nearest records, nearest first; records with equal scores in ascending order. Takes
   * O(size × (dimension + log k)).
   *
   * The score is, depending on the metric, the cosine in [-1, 1] (0 if either vector is zero), the dot product, or
   * 1 / (1 + Euclidean distance).
   *
   * @param query    finite, with the dimension of the segment
   * @param allowed  records to search; all records if undefined
   * @throws RangeError  the query has the wrong length
   */
  nearest(query: Float32Array, k: number, allowed?: ReadonlySet<number>): ScoredRecord[] {
    this.#requireLength(query)
    // Computes the norm of the query like that of a row, so that the cosine of equal vectors is exactly 1.
    const querySquare = this.#writeRow(query, this.size)
    this.#views.doubles.set(query)
    const slots = allowed && allowed.size < this.size * GATHER_SHARE_MAX ? this.#slotsOf(allowed) : undefined
    const total = slots?.length ?? this.size
    const results = this.#views.doubles.subarray(this.#outOffset / 8, this.#slotsOffset / 8)
    const [score, records, squares] = [scoreFunctions[this.#metric], this.#records, this.#squares]
    const best = new TopResults(k)
    for (let from = 0; from < total; from += BATCH_ROWS) {
      const count = Math.min(BATCH_ROWS, total - from)
      this.#runKernel(from, count, slots)
      for (let i = 0; i < count; i++) {
        const slot = slots ? slots[from + i]! : from + i
        const value = score(results[i]!, querySquare, squares[slot]!)
        if (value < best.minScore) continue
        const record = records[slot]!
        if (!allowed || allowed.has(record)) best.offer(value, record)
      }
    }
    return best.ranked()
  }

  #rowOffset(slot: number): number {
    return this.#rowsOffset + slot * this.#strideBytes
  }

  get #pages(): number {
    return this.#memory.buffer.byteLength / PAGE_BYTES
  }

  /** Returns the number of memory pages that `rows` rows and the spare row need. */
  #pagesFor(rows: number): number {
    return Math.ceil(this.#rowOffset(rows + 1) / PAGE_BYTES)
  }

  #growTo(pages: number): void {
    if (pages <= this.#pages) return
    this.#memory.grow(pages - this.#pages)
    this.#views = viewsOf(this.#memory)
  }

  /** Writes a vector into a slot, and returns its squared norm. */
  #writeRow(vector: Float32Array, slot: number): number {
    this.#views.floats.set(vector, this.#rowOffset(slot) / 4)
    return this.#kernels.squaredNorm(this.#rowOffset(slot), this.#strideBytes)
  }

  /** Returns the slots of records in ascending order, so that memory is read in order. */
  #slotsOf(allowed: ReadonlySet<number>): Uint32Array {
    const slots: number[] = []
    for (const record of allowed) {
      const slot = this.#slotOf.get(record)
      if (slot !== undefined) slots.push(slot)
    }
    return Uint32Array.from(slots).sort()
  }

  /**
   * Runs the kernel of the metric on `count` rows: those in `slots` from index `from` on, or without `slots` those
   * from slot `from` on.
   */
  #runKernel(from: number, count: number, slots: Uint32Array | undefined): void {
    const kernel = this.#metric === 'euclidean' ? this.#kernels.squaredDistance : this.#kernels.dot
    if (slots) this.#views.words.set(slots.subarray(from, from + count), this.#slotsOffset / 4)
    const [firstRow, slotList] = slots ? [this.#rowsOffset, this.#slotsOffset] : [this.#rowOffset(from), 0]
    kernel(0, firstRow, slotList, count, this.#strideBytes, this.#outOffset)
  }

  #requireLength(vector: Float32Array): void {
    if (vector.length !== this.#dimension)
      throw new RangeError(`the vector has ${vector.length} floats instead of ${this.#dimension}`)
  }
}

/**
 * Returns the `k` nearest of rows that do not fit into memory. Loads the rows into one small segment, a few MiB at a
 * time.
 *
 * The result is identical to that of a `Segment` with all rows.
 *
 * @param blocks  must contain each record at most once
 * @throws RangeError  the number of floats in a block does not match its records, or the query has the wrong length
 */
export function scanBlocks(
  module: ScanModule,
  blocks: Iterable<VectorBlock>,
  blockQuery: BlockQuery,
): ScoredRecord[] {
  const { dimension, metric, query, k, allowed } = blockQuery
  const window = new Segment(module, dimension, metric)
  const windowRows = Math.max(1, Math.min(BATCH_ROWS, Math.floor(WINDOW_BYTES / (dimension * 4))))
  window.reserve(windowRows)
  let best: ScoredRecord[] = []
  const mergeWindow = () => {
    best = [...best, ...window.nearest(query, k)].sort(byRank).slice(0, k)
    window.clear()
  }
  for (const { records, vectors } of blocks) {
    if (vectors.length !== records.length * dimension)
      throw new RangeError(
        `a block has ${vectors.length} floats for ${records.length} vectors of ${dimension} floats`,
      )
    for (let i = 0; i < records.length; i++) {
      const record = records[i]!
      if (allowed && !allowed.has(record)) continue
      window.append(record, vectors.subarray(i * dimension, (i + 1) * dimension))
      if (window.size === windowRows) mergeWindow()
    }
  }
  mergeWindow()
  return best
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

interface Views {
  floats: Float32Array
  doubles: Float64Array
  words: Uint32Array
}

/** Creates typed-array views of a memory. They become invalid when the memory grows. */
function viewsOf({ buffer }: ScanMemory): Views {
  return {
    floats: new Float32Array(buffer),
    doubles: new Float64Array(buffer),
    words: new Uint32Array(buffer),
  }
}

function byRank(a: ScoredRecord, b: ScoredRecord): number {
  return b.score - a.score || a.record - b.record
}

/** The `k` best results so far, as a binary heap with the worst on top. */
class TopResults {
  readonly #k: number
  readonly #heap: ScoredRecord[] = []
  /** Results with a lower score cannot be among the best. For most rows, the caller compares only this. */
  minScore = Number.NEGATIVE_INFINITY

  constructor(k: number) {
    this.#k = k
  }

  offer(score: number, record: number): void {
    const item = { record, score }
    if (this.#heap.length < this.#k) this.#siftUp(item)
    else if (this.#k > 0 && byRank(item, this.#heap[0]!) < 0) this.#siftDown(item)
    if (this.#heap.length === this.#k) this.minScore = this.#heap[0]?.score ?? Number.POSITIVE_INFINITY
  }

  ranked(): ScoredRecord[] {
    return this.#heap.toSorted(byRank)
  }

  #siftUp(item: ScoredRecord): void {
    let at = this.#heap.length
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (byRank(this.#heap[parent]!, item) > 0) break
      this.#heap[at] = this.#heap[parent]!
      at = parent
    }
    this.#heap[at] = item
  }

  #siftDown(item: ScoredRecord): void {
    const { length } = this.#heap
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= length) break
      if (child + 1 < length && byRank(this.#heap[child]!, this.#heap[child + 1]!) < 0) child++
      if (byRank(item, this.#heap[child]!) > 0) break
      this.#heap[at] = this.#heap[child]!
      at = child
    }
    this.#heap[at] = item
  }
}
