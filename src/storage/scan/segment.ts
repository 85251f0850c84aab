import { limits } from '../../contract/limits.ts'
import type { Metric, Scored } from '../content.ts'
import {
  MAX_PAGES,
  openScan,
  PAGE_BYTES,
  type ScanKernels,
  type ScanMemory,
  type ScanModule,
} from './module.ts'

/** Consecutive rows read from disk: `vectors` holds `records.length` vectors, one after another. */
export interface Block {
  records: ArrayLike<number>
  vectors: Float32Array
}

/** A question put to blocks of rows that are not resident. */
export interface BlockQuery {
  dimension: number
  metric: Metric
  query: Float32Array
  k: number
  allowed?: ReadonlySet<number> | undefined
}

/** Floats per turn of the kernels' inner loop: rows are padded to a multiple of it. */
const LANES = 4
/** Rows per kernel call: their results, 32 KiB, stay in the first cache. */
const BATCH_ROWS = 4_096
/** Below this share of allowed rows, looking them up one by one beats a pass over all at any dimension. */
const GATHER_SHARE = 0.25
/** Record, squared norm and slot entry of one row, outside the linear memory; an estimate. */
const SIDE_BYTES = 64
/** Rows of `scanBlocks` in memory at a time. */
const WINDOW_BYTES = 4 * 1024 * 1024

/**
 * Resident vectors of one collection, and the exact nearest of them.
 *
 * Results are computed in double precision from the stored floats: no row is skipped, quantised or approximated.
 * Slots are dense (a removed row's slot is taken by the last row), so a scan reads live rows only.
 *
 * Linear memory: the query as f64, BATCH_ROWS results, BATCH_ROWS slot numbers, then the rows; see `scan.wat`.
 * One row past the last is spare: the query is measured there.
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
   * @param dimension  1 to `limits.vectorLength`
   * @throws RangeError dimension out of bounds
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

  /** Rows held. */
  get size(): number {
    return this.#records.length
  }

  /** Bytes held, room for further rows included: memory grows by doubling and never shrinks. */
  get bytes(): number {
    return this.#memory.buffer.byteLength + this.size * SIDE_BYTES
  }

  /**
   * Make room for `rows` rows in all, so that a load of known size holds no more than it needs.
   *
   * @throws RangeError beyond the 4 GiB that one segment can address
   */
  reserve(rows: number): void {
    this.#growTo(this.#pagesFor(rows))
  }

  /**
   * Hold a vector, in place of the record's earlier one if there is one.
   *
   * @param vector  finite, length = the segment's dimension; copied
   * @throws RangeError wrong length, or the segment is full at 4 GiB
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

  /** Let a record go; false when it was not held. */
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

  /** Let every record go and keep the memory. */
  clear(): void {
    this.#records.length = 0
    this.#squares.length = 0
    this.#slotOf.clear()
  }

  /**
   * The `k` nearest records, nearest first; equal scores by record, ascending. O(size × dimension + size × log k).
   *
   * Scores: the cosine in [-1, 1], 0 if either vector is zero; the dot product; 1 / (1 + Euclidean distance).
   *
   * @param query    finite, length = the segment's dimension
   * @param allowed  only these records are considered, before the cut at `k`
   * @throws RangeError wrong length
   */
  nearest(query: Float32Array, k: number, allowed?: ReadonlySet<number>): Scored[] {
    this.#requireLength(query)
    // The query is measured as a row is, so that the cosine of equal vectors is exactly 1.
    const querySquare = this.#place(query, this.size)
    this.#views.doubles.set(query)
    const slots = allowed && allowed.size < this.size * GATHER_SHARE ? this.#slotsOf(allowed) : undefined
    const total = slots?.length ?? this.size
    const results = this.#views.doubles.subarray(this.#outAt / 8, this.#slotsAt / 8)
    const [score, records, squares] = [scores[this.#metric], this.#records, this.#squares]
    const best = new Best(k)
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

  /** Pages that hold `rows` rows and the spare one. */
  #pagesFor(rows: number): number {
    return Math.ceil(this.#rowAt(rows + 1) / PAGE_BYTES)
  }

  #growTo(pages: number): void {
    if (pages <= this.#pages) return
    this.#memory.grow(pages - this.#pages)
    this.#views = viewsOf(this.#memory)
  }

  /** Write a vector as the row of a slot; its squared norm. */
  #place(vector: Float32Array, slot: number): number {
    this.#views.floats.set(vector, this.#rowAt(slot) / 4)
    return this.#kernels.squaredNorm(this.#rowAt(slot), this.#strideBytes)
  }

  /** Ascending, so that rows are visited in the order of their addresses. */
  #slotsOf(allowed: ReadonlySet<number>): Uint32Array {
    const slots: number[] = []
    for (const record of allowed) {
      const slot = this.#slotOf.get(record)
      if (slot !== undefined) slots.push(slot)
    }
    return Uint32Array.from(slots).sort()
  }

  /** Let the metric's kernel write the results of `count` rows: those from `from` on, or those listed there. */
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
 * The `k` nearest of rows too many to keep: each window of rows passes through one small segment.
 *
 * The answer equals that of a `Segment` holding every row, to the last bit. Memory stays within a few MiB.
 *
 * @param blocks  each record at most once
 * @throws RangeError a block whose vectors do not match its records, or wrong query length
 */
export function scanBlocks(module: ScanModule, blocks: Iterable<Block>, question: BlockQuery): Scored[] {
  const { dimension, metric, query, k, allowed } = question
  const window = new Segment(module, dimension, metric)
  const windowRows = Math.max(1, Math.min(BATCH_ROWS, Math.floor(WINDOW_BYTES / (dimension * 4))))
  window.reserve(windowRows)
  let best: Scored[] = []
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

/** Similarity from a kernel's result and the squared norms of query and row. */
const scores: Record<Metric, (result: number, querySquare: number, rowSquare: number) => number> = {
  cosine: (result, querySquare, rowSquare) => {
    // Floats have a least square near 2e-90, so that the product is zero only if a vector is.
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

/** Growing detaches earlier views of a memory: take them anew. */
function viewsOf({ buffer }: ScanMemory): Views {
  return {
    floats: new Float32Array(buffer),
    doubles: new Float64Array(buffer),
    words: new Uint32Array(buffer),
  }
}

function byRank(a: Scored, b: Scored): number {
  return b.score - a.score || a.record - b.record
}

/** The `k` best so far: a binary heap with the worst on top. */
class Best {
  readonly #k: number
  readonly #heap: Scored[] = []
  /** Scores below it are out of the running: most rows cost this one comparison. */
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

  ranked(): Scored[] {
    return this.#heap.toSorted(byRank)
  }

  #rise(item: Scored): void {
    let at = this.#heap.length
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (byRank(this.#heap[parent]!, item) > 0) break
      this.#heap[at] = this.#heap[parent]!
      at = parent
    }
    this.#heap[at] = item
  }

  #sink(item: Scored): void {
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
