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

/** Consecutive rows read from disk: `vectors` holds `records.length` vectors, one after another. */
export interface VectorBlock {
  records: ArrayLike<number>
  vectors: Float32Array
}

/** A search over rows that are not in memory. */
export interface BlockQuery {
  dimension: number
  metric: Metric
  query: Float32Array
  k: number
  allowed?: ReadonlySet<number> | undefined
}

/** Floats per iteration of the kernels' inner loop. Rows are padded to a multiple of it. */
const LANES = 4
/** Rows per kernel call. Their results, 32 KiB, fit into the level 1 cache. */
const BATCH_ROWS = 4_096
/**
 * Share of allowed rows below which reading them one by one is faster than scanning all, at any dimension.
 */
const GATHER_SHARE = 0.25
/** Estimated bytes of a row outside the linear memory: record, squared norm and slot entry. */
const SIDE_BYTES = 64
/** Maximum bytes of rows that `scanBlocks` holds in memory at a time. */
const WINDOW_BYTES = 4 * 1024 * 1024

/**
 * Vectors of one collection in memory, with exact nearest-neighbor search.
 *
 * Results are computed in double precision from the stored floats: no row is skipped, quantized or
 * approximated. Slots are dense (the last row moves into the slot of a removed row), so a scan reads live
 * rows only.
 *
 * Layout of the linear memory: the query as f64, BATCH_ROWS results, BATCH_ROWS slot numbers, then the rows;
 * see `scan.wat`. A spare row after the last one is used to compute the norm of the query.
 */
export class Segment {
  readonly #dimension: number
  readonly #metric: Metric
  readonly #strideBytes: number
  readonly #outAt: number
  readonly #slotsAt: number
  readonly #rowsAt: number
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
    this.#outAt = padded * 8
    this.#slotsAt = this.#outAt + BATCH_ROWS * 8
    this.#rowsAt = this.#slotsAt + BATCH_ROWS * 4
    const { memory, kernels } = openScan(module, this.#pagesFor(0))
    this.#memory = memory
    this.#kernels = kernels
    this.#views = viewsOf(memory)
  }

  /** Number of rows. */
  get size(): number {
    return this.#records.length
  }

  /** Bytes in use, including free capacity: memory grows by doubling and never shrinks. */
  get bytes(): number {
    return this.#memory.buffer.byteLength + this.size * SIDE_BYTES
  }

  /**
   * Allocates memory for a total of `rows` rows. Loading a known number of rows then takes no more than
   * necessary.
   *
   * @throws RangeError  more than the 4 GiB that one segment can address
   */
  reserve(rows: number): void {
    this.#growTo(this.#pagesFor(rows))
  }

  /**
   * Adds a vector, or replaces the record's earlier one.
   *
   * @param vector  finite, with the dimension of the segment; copied
   * @throws RangeError  wrong length, or the segment is full at 4 GiB
   */
  append(record: number, vector: Float32Array): void {
    this.#requireLength(vector)
    const slot = this.#slotOf.get(record) ?? this.size
    const needed = this.#pagesFor(slot + 1)
    if (needed > this.#pages) this.#growTo(Math.max(needed, Math.min(this.#pages * 2, MAX_PAGES)))
    this.#squares[slot] = this.#place(vector, slot)
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
      const last = this.#rowAt(this.size) / 4
      this.#views.floats.copyWithin(this.#rowAt(slot) / 4, last, last + this.#dimension)
      this.#records[slot] = lastRecord
      this.#squares[slot] = lastSquare
      this.#slotOf.set(lastRecord, slot)
    }
    return true
  }

  /** Removes all records and keeps the memory. */
  clear(): void {
    this.#records.length = 0
    this.#squares.length = 0
    this.#slotOf.clear()
  }

  /**
   * Returns the `k` nearest records, nearest first; equal scores by ascending record. O(size × dimension +
   * size × log k).
   *
   * Scores: the cosine in [-1, 1], 0 if either vector is zero; the dot product; 1 / (1 + Euclidean distance).
   *
   * @param query    finite, with the dimension of the segment
   * @param allowed  if given, other records are left out before the `k` best are chosen
   * @throws RangeError  wrong length
   */
  nearest(query: Float32Array, k: number, allowed?: ReadonlySet<number>): ScoredRecord[] {
    this.#requireLength(query)
    // The norm of the query is computed like that of a row, so that the cosine of equal vectors is exactly 1.
    const querySquare = this.#place(query, this.size)
    this.#views.doubles.set(query)
    const slots = allowed && allowed.size < this.size * GATHER_SHARE ? this.#slotsOf(allowed) : undefined
    const total = slots?.length ?? this.size
    const results = this.#views.doubles.subarray(this.#outAt / 8, this.#slotsAt / 8)
    const [score, records, squares] = [scores[this.#metric], this.#records, this.#squares]
    const best = new TopResults(k)
    for (let from = 0; from < total; from += BATCH_ROWS) {
      const count = Math.min(BATCH_ROWS, total - from)
      this.#measure(from, count, slots)
      for (let i = 0; i < count; i++) {
        const slot = slots ? slots[from + i]! : from + i
        const value = score(results[i]!, querySquare, squares[slot]!)
        if (value < best.bar) continue
        const record = records[slot]!
        if (!allowed || allowed.has(record)) best.offer(value, record)
      }
    }
    return best.ranked()
  }

  #rowAt(slot: number): number {
    return this.#rowsAt + slot * this.#strideBytes
  }

  get #pages(): number {
    return this.#memory.buffer.byteLength / PAGE_BYTES
  }

  /** Returns the number of pages for `rows` rows and the spare one. */
  #pagesFor(rows: number): number {
    return Math.ceil(this.#rowAt(rows + 1) / PAGE_BYTES)
  }

  #growTo(pages: number): void {
    if (pages <= this.#pages) return
    this.#memory.grow(pages - this.#pages)
    this.#views = viewsOf(this.#memory)
  }

  /** Writes a vector into a slot, and returns its squared norm. */
  #place(vector: Float32Array, slot: number): number {
    this.#views.floats.set(vector, this.#rowAt(slot) / 4)
    return this.#kernels.squaredNorm(this.#rowAt(slot), this.#strideBytes)
  }

  /** Returns slots in ascending order, so that rows are read in the order of their addresses. */
  #slotsOf(allowed: ReadonlySet<number>): Uint32Array {
    const slots: number[] = []
    for (const record of allowed) {
      const slot = this.#slotOf.get(record)
      if (slot !== undefined) slots.push(slot)
    }
    return Uint32Array.from(slots).sort()
  }

  /** Runs the kernel of the metric on `count` rows: `slots` from index `from` on, or rows from `from` on. */
  #measure(from: number, count: number, slots: Uint32Array | undefined): void {
    const kernel = this.#metric === 'euclidean' ? this.#kernels.squaredDistance : this.#kernels.dot
    if (slots) this.#views.words.set(slots.subarray(from, from + count), this.#slotsAt / 4)
    const [firstRow, list] = slots ? [this.#rowsAt, this.#slotsAt] : [this.#rowAt(from), 0]
    kernel(0, firstRow, list, count, this.#strideBytes, this.#outAt)
  }

  #requireLength(vector: Float32Array): void {
    if (vector.length !== this.#dimension)
      throw new RangeError(`a vector of ${vector.length} floats where ${this.#dimension} are stored`)
  }
}

/**
 * Returns the `k` nearest of rows that do not fit into memory: reads them through one small segment, a window
 * at a time.
 *
 * The result is identical to that of a `Segment` with all rows. Takes a few MiB of memory.
 *
 * @param blocks  contain each record at most once
 * @throws RangeError  a block whose vectors do not match its records, or a query of the wrong length
 */
export function scanBlocks(
  module: ScanModule,
  blocks: Iterable<VectorBlock>,
  question: BlockQuery,
): ScoredRecord[] {
  const { dimension, metric, query, k, allowed } = question
  const window = new Segment(module, dimension, metric)
  const windowRows = Math.max(1, Math.min(BATCH_ROWS, Math.floor(WINDOW_BYTES / (dimension * 4))))
  window.reserve(windowRows)
  let best: ScoredRecord[] = []
  const takeWindow = () => {
    best = [...best, ...window.nearest(query, k)].sort(byRank).slice(0, k)
    window.clear()
  }
  for (const { records, vectors } of blocks) {
    if (vectors.length !== records.length * dimension)
      throw new RangeError(`${vectors.length} floats for ${records.length} vectors of ${dimension}`)
    for (let i = 0; i < records.length; i++) {
      const record = records[i]!
      if (allowed && !allowed.has(record)) continue
      window.append(record, vectors.subarray(i * dimension, (i + 1) * dimension))
      if (window.size === windowRows) takeWindow()
    }
  }
  takeWindow()
  return best
}

/** Functions from the result of a kernel, and the squared norms of query and row, to a score. */
const scores: Record<Metric, (result: number, querySquare: number, rowSquare: number) => number> = {
  cosine: (result, querySquare, rowSquare) => {
    // The least square of a nonzero float is near 2e-90, so the product is zero only if a vector is zero.
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

/** Returns views of a memory. They become invalid when the memory grows. */
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
  /** Results with a lower score cannot be among the best; most rows cost only this comparison. */
  bar = Number.NEGATIVE_INFINITY

  constructor(k: number) {
    this.#k = k
  }

  offer(score: number, record: number): void {
    const item = { record, score }
    if (this.#heap.length < this.#k) this.#rise(item)
    else if (this.#k > 0 && byRank(item, this.#heap[0]!) < 0) this.#sink(item)
    if (this.#heap.length === this.#k) this.bar = this.#heap[0]?.score ?? Number.POSITIVE_INFINITY
  }

  ranked(): ScoredRecord[] {
    return this.#heap.toSorted(byRank)
  }

  #rise(item: ScoredRecord): void {
    let at = this.#heap.length
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (byRank(this.#heap[parent]!, item) > 0) break
      this.#heap[at] = this.#heap[parent]!
      at = parent
    }
    this.#heap[at] = item
  }

  #sink(item: ScoredRecord): void {
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
