import { LRUCache } from 'lru-cache'
import type { Metric, ScoredRecord } from '../content.ts'
import type { RecordSet } from '../record-set.ts'
import { TopResults } from '../top-results.ts'
import { CandidateSearch } from './candidate-search.ts'
import { ExactRows } from './exact-rows.ts'
import { ExactScorer, requireDimension, requireLength } from './exact-scorer.ts'
import {
  createScanMemory,
  loadSharedScanModule,
  MAX_PAGES,
  openKernels,
  PAGE_BYTES,
  type ScanKernels,
  type ScanMemory,
  type ScanModule,
} from './module.ts'
import {
  boundTerms,
  ERROR,
  errorOf,
  FACTS,
  type FactColumns,
  type QuantizedRows,
  RECORD,
  ROUNDING_SHARE,
  type RowMargins,
  strideOf,
} from './quantized-rows.ts'
import type { SharedRows } from './scan-job.ts'
import type { ScanWorkers } from './scan-workers.ts'

/** Reads the exact vectors of records, in the order of the records. */
export type ReadVectors = (records: readonly number[]) => Float32Array[]

/** Rows per kernel call. Their results take 32 KiB, which fits into the L1 cache. */
const BATCH_ROWS = 4_096
/** Maximum number of queries per pass over the rows. */
const PASS_QUERIES = 8
/** If less than this share of the rows is allowed, reading only these rows is faster than scanning all rows. */
const GATHER_SHARE_MAX = 0.25
/** Number of candidates whose exact vectors are read at a time. */
const CANDIDATES_PER_READ = 64
/** Maximum bytes of the slots of recently allowed records. */
const SELECTION_BYTES_MAX = 16 * 1024 * 1024
const SELECTION_OVERHEAD_BYTES = 200
/** Estimated bytes per map entry. */
const MAP_ENTRY_BYTES = 40

/**
 * Quantized vectors in memory, with exact nearest-neighbor search.
 *
 * A row is stored as 8-bit integers times a scale, with the norm of the quantization error. A search computes an upper
 * and a lower bound of every score from the integers. It reads the exact vectors of the rows whose upper bound reaches
 * the k-th best lower bound, and computes their exact scores, in the order of their upper bounds, until no remaining
 * row can be among the best. The result is identical to a scan of all exact vectors.
 *
 * Exact vectors that were read can be cached. A search of nearly equal vectors, which are all candidates, then takes about
 * three times as long as a scan of all exact vectors.
 *
 * The bound is that of Cauchy and Schwarz: if the row x is scale·q + e and the query y is s·r + f, then x·y differs
 * from scale·s·(q·r) by at most |e|·|y| + |x|·|f| + |e|·|f|.
 *
 * A slot is the position of a row. Slots are dense: when a row is removed, the last row moves into its slot.
 *
 * Layout of the linear memory: PASS_QUERIES queries as i16, one row as f32, BATCH_ROWS results for each of two queries,
 * BATCH_ROWS slot numbers, the results of scan workers, then the rows; see `scan.wat`.
 */
export class Segment {
  readonly #dimension: number
  readonly #metric: Metric
  readonly #strideBytes: number
  readonly #stagingOffset: number
  readonly #outOffset: number
  readonly #slotsOffset: number
  readonly #rowsOffset: number
  readonly #memory: ScanMemory
  readonly #kernels: ScanKernels
  readonly #scorer: ExactScorer
  readonly #readVectors: ReadVectors
  readonly #workers: ScanWorkers | undefined
  readonly #sharedRows: SharedRows
  /** The exact rows that were read; undefined if they are not cached. */
  #exact: ExactRows | undefined
  #views: Views
  #size = 0
  #facts = createColumns(0)
  /** Margins that are at least those of every row that the segment has ever contained. */
  #marginsMax: RowMargins = { error: 0, roundingShare: 0 }
  readonly #slotOf = new Map<number, number>()
  /** Number of changes to the segment. */
  #version = 0
  readonly #selections = new LRUCache<RecordSet, Selection>({
    maxSize: SELECTION_BYTES_MAX,
    sizeCalculation: ({ slots, mask }) => SELECTION_OVERHEAD_BYTES + (slots ?? mask)!.byteLength,
  })

  /**
   * Creates an empty segment.
   *
   * @param readVectors  reads the exact vectors of records of the segment
   * @param workers      threads that share the memory of the segment, and help with scans of many rows
   * @throws RangeError  the dimension is out of range
   */
  constructor(
    module: ScanModule,
    dimension: number,
    metric: Metric,
    readVectors: ReadVectors,
    workers?: ScanWorkers,
  ) {
    requireDimension(dimension)
    this.#dimension = dimension
    this.#metric = metric
    this.#readVectors = readVectors
    this.#scorer = new ExactScorer(module, dimension, metric)
    this.#strideBytes = strideOf(dimension)
    this.#stagingOffset = PASS_QUERIES * this.#strideBytes * 2
    this.#outOffset = this.#stagingOffset + this.#strideBytes * 4
    this.#slotsOffset = this.#outOffset + 2 * BATCH_ROWS * 8
    const resultsOffset = this.#slotsOffset + BATCH_ROWS * 4
    this.#rowsOffset = resultsOffset + (workers?.resultBytes ?? 0)
    const rowsModule = workers ? loadSharedScanModule() : module
    const memory = createScanMemory(rowsModule, this.#pagesFor(0))
    this.#memory = memory
    this.#kernels = openKernels(rowsModule, memory)
    this.#views = viewsOf(memory)
    this.#workers = workers
    this.#sharedRows = {
      memory,
      strideBytes: this.#strideBytes,
      rowsOffset: this.#rowsOffset,
      resultsOffset,
    }
  }

  /** True if workers can help with scans. */
  get isShared(): boolean {
    return this.#workers !== undefined
  }

  /** Ends workers that refer to the memory, so that it can be collected. */
  close(): void {
    this.#workers?.release(this.#sharedRows)
  }

  /** Number of rows. */
  get size(): number {
    return this.#size
  }

  /** Allocated bytes, including unused capacity. The memory never shrinks. */
  get bytes(): number {
    return (
      this.#memory.buffer.byteLength +
      this.#facts.length * this.#facts[RECORD].byteLength +
      (this.#exact?.bytes ?? 0) +
      this.#size * MAP_ENTRY_BYTES
    )
  }

  /** True if exact vectors that are read stay in memory. */
  get cachesExact(): boolean {
    return this.#exact !== undefined
  }

  set cachesExact(isEnabled: boolean) {
    this.#exact = isEnabled ? (this.#exact ?? new ExactRows(this.#dimension)) : undefined
  }

  /**
   * Allocates memory for a total of `rows` rows. Call it before loading a known number of rows; otherwise `append`
   * doubles the memory whenever it is full.
   *
   * @throws RangeError  the rows need more than the 4 GiB that one segment can address
   */
  reserve(rows: number): void {
    this.#growTo(this.#pagesFor(rows))
    this.#growRows(rows)
  }

  /**
   * Adds the vector of a record, or replaces it.
   *
   * @param vector  finite, with the dimension of the segment
   * @throws RangeError  the vector has the wrong length, or the segment is full at 4 GiB
   */
  append(record: number, vector: Float32Array): void {
    requireLength(vector, this.#dimension)
    const slot = this.#slotOf.get(record) ?? this.#size
    this.#makeRoom(slot + 1)
    this.#views.floats.set(vector, this.#stagingOffset / 4)
    const [scale, squaredError] = this.#kernels.quantize(
      this.#stagingOffset,
      this.#strideBytes * 4,
      this.#rowOffset(slot),
    )
    const squaredNorm = this.#kernels.squaredNorm(this.#stagingOffset, this.#strideBytes * 4)
    const terms = boundTerms[this.#metric](scale, errorOf(squaredError), Math.sqrt(squaredNorm))
    for (const [column, value] of [record, ...terms].entries()) this.#facts[column]![slot] = value
    this.#noteMargins(slot)
    this.#exact?.delete(slot)
    this.#slotOf.set(record, slot)
    if (slot === this.#size) this.#size++
    this.#version++
  }

  /**
   * Adds rows of the dimension and metric of this segment. None of their records may be in the segment.
   *
   * @throws RangeError  the segment is full at 4 GiB
   */
  appendQuantized({ facts, levels }: QuantizedRows): void {
    const first = this.#size
    const count = facts.length / FACTS
    this.#makeRoom(first + count)
    this.#views.bytes.set(levels, this.#rowOffset(first))
    for (const [column, values] of this.#facts.entries())
      values.set(facts.subarray(column * count, (column + 1) * count), first)
    for (let slot = first; slot < first + count; slot++) {
      this.#slotOf.set(this.#recordAt(slot), slot)
      this.#noteMargins(slot)
    }
    this.#size += count
    this.#version++
  }

  /** Returns a copy of all rows. */
  quantizedRows(): QuantizedRows {
    const levels = this.#views.bytes.slice(this.#rowsOffset, this.#rowOffset(this.#size))
    const facts = new Float64Array(this.#size * FACTS)
    for (const [column, values] of this.#facts.entries())
      facts.set(values.subarray(0, this.#size), column * this.#size)
    return { facts, levels }
  }

  /** Removes a record; returns false if it is not in the segment. */
  remove(record: number): boolean {
    const slot = this.#slotOf.get(record)
    if (slot === undefined) return false
    this.#slotOf.delete(record)
    this.#version++
    const last = --this.#size
    if (slot !== last) {
      const from = this.#rowOffset(last)
      this.#views.bytes.copyWithin(this.#rowOffset(slot), from, from + this.#strideBytes)
      for (const values of this.#facts) values[slot] = values[last]!
      this.#exact?.move(last, slot)
      this.#slotOf.set(this.#recordAt(slot), slot)
    } else this.#exact?.delete(slot)
    return true
  }

  /**
   * Returns the `k` nearest records, nearest first; records with equal scores in ascending order. Scores are those of
   * {@link ExactScorer}. Takes O(size × dimension), and reads the exact vectors of the rows that can be among the best.
   *
   * @param query    finite, with the dimension of the segment
   * @param allowed  records to search; all records if undefined
   * @throws RangeError  the query has the wrong length
   */
  nearest(query: Float32Array, k: number, allowed?: RecordSet): ScoredRecord[] {
    return this.nearestOfEach([{ query, k, allowed }])[0]!
  }

  /** Returns the results of {@link nearest} for several queries. Reads the rows once for up to PASS_QUERIES of them. */
  nearestOfEach(queries: readonly SegmentQuery[]): ScoredRecord[][] {
    const searches = queries.map(({ query, k, allowed }) => {
      this.#scorer.setQuery(query)
      const search = new CandidateSearch(this.#metric, query, this.#scorer.squaredNorm(query), k)
      return { search, allowed, selection: allowed && this.#select(allowed) }
    })
    const scanned = searches.filter(({ search }) => !search.isTrivial)
    const ofAllRows: FullScan[] = []
    for (const { search, selection } of scanned)
      if (selection?.slots) this.#scanSlots(search, selection.slots)
      else ofAllRows.push({ search, mask: selection?.mask })
    // Several searches that wait at the same time keep the cores busy without workers.
    if (ofAllRows.length === 1 && this.#workers?.areWorthwhile(this.#size * this.#strideBytes))
      this.#scanWithWorkers(this.#workers, ofAllRows[0]!)
    else
      for (let from = 0; from < ofAllRows.length; from += PASS_QUERIES)
        this.#scanAll(ofAllRows.slice(from, from + PASS_QUERIES))
    return searches.map(({ search, allowed }) =>
      search.isTrivial ? this.#lowestRecords(search.k, allowed) : this.#rank(search),
    )
  }

  #scanSlots(search: CandidateSearch, slots: Uint32Array): void {
    this.#views.shorts.set(search.levels, 0)
    const results = this.#results(0)
    for (let from = 0; from < slots.length; from += BATCH_ROWS) {
      const batch = slots.subarray(from, from + BATCH_ROWS)
      this.#views.words.set(batch, this.#slotsOffset / 4)
      const { length } = batch
      this.#kernels.quantizedDot(
        0,
        this.#rowsOffset,
        this.#slotsOffset,
        length,
        this.#strideBytes,
        this.#outOffset,
      )
      search.offer({ results, facts: this.#facts, count: length, slots: batch, marginsMax: this.#marginsMax })
    }
  }

  #scanAll(scans: readonly FullScan[]): void {
    const queryBytes = this.#strideBytes * 2
    for (const [at, { search }] of scans.entries())
      this.#views.shorts.set(search.levels, (at * queryBytes) / 2)
    for (let from = 0; from < this.#size; from += BATCH_ROWS) {
      const count = Math.min(BATCH_ROWS, this.#size - from)
      for (let at = 0; at < scans.length; at += 2) {
        const pair = scans.slice(at, at + 2)
        const [query, rows] = [at * queryBytes, this.#rowOffset(from)]
        if (pair.length === 2)
          this.#kernels.quantizedDotPair(
            query,
            rows,
            count,
            this.#strideBytes,
            this.#outOffset,
            BATCH_ROWS * 8,
          )
        else this.#kernels.quantizedDotInOrder(query, rows, count, this.#strideBytes, this.#outOffset)
        for (const [index, { search, mask }] of pair.entries())
          search.offer({
            results: this.#results(index),
            facts: this.#facts,
            count,
            from,
            mask,
            marginsMax: this.#marginsMax,
          })
      }
    }
  }

  #scanWithWorkers(workers: ScanWorkers, { search, mask }: FullScan): void {
    this.#views.shorts.set(search.levels, 0)
    const own = this.#results(0)
    workers.scan({
      rows: this.#sharedRows,
      size: this.#size,
      compute: (from, count) => {
        this.#kernels.quantizedDotInOrder(0, this.#rowOffset(from), count, this.#strideBytes, this.#outOffset)
        return own
      },
      offer: (results, from, count) =>
        search.offer({ results, facts: this.#facts, count, from, mask, marginsMax: this.#marginsMax }),
    })
  }

  /** Returns the results of the kernel for the first or second query. */
  #results(index: number): Float64Array {
    const first = this.#outOffset / 8 + index * BATCH_ROWS
    return this.#views.doubles.subarray(first, first + BATCH_ROWS)
  }

  /** Computes the exact scores of candidates, the highest bound first, until no other can be among the best. */
  #rank(search: CandidateSearch): ScoredRecord[] {
    const { slots, keys } = search.candidates()
    this.#scorer.setQuery(search.query)
    const order = Uint32Array.from(slots.keys()).sort((a, b) => keys[b]! - keys[a]!)
    const best = new TopResults(search.k)
    for (let from = 0; from < order.length; from += CANDIDATES_PER_READ) {
      if (search.scoreOfKey(keys[order[from]!]!) < best.minScore) break
      const group = order.subarray(from, from + CANDIDATES_PER_READ)
      const bySlot = Array.from(group, at => slots[at]!).sort((a, b) => a - b)
      for (const [at, score] of this.#scorer.scores(this.#exactVectors(bySlot)).entries())
        best.offer(score, this.#recordAt(bySlot[at]!))
    }
    return best.ranked()
  }

  #lowestRecords(k: number, allowed: RecordSet | undefined): ScoredRecord[] {
    const best = new TopResults(k)
    for (const record of allowed ?? this.#slotOf.keys()) if (this.#slotOf.has(record)) best.offer(0, record)
    return best.ranked()
  }

  /** Returns exact vectors by slot, and reads those that are not in memory. */
  #exactVectors(slots: readonly number[]): Float32Array[] {
    const unknown = slots.filter(slot => !this.#exact?.get(slot))
    const read = this.#readVectors(unknown.map(slot => this.#recordAt(slot)))
    if (!this.#exact) return read
    for (const [at, slot] of unknown.entries()) this.#exact.set(slot, read[at]!)
    return slots.map(slot => this.#exact!.get(slot)!)
  }

  #noteMargins(slot: number): void {
    const error = this.#facts[ERROR][slot]!
    const roundingShare = this.#facts[ROUNDING_SHARE][slot]!
    const greatest = this.#marginsMax
    if (error > greatest.error || roundingShare > greatest.roundingShare)
      this.#marginsMax = {
        error: Math.max(error, greatest.error),
        roundingShare: Math.max(roundingShare, greatest.roundingShare),
      }
  }

  #recordAt(slot: number): number {
    return this.#facts[RECORD][slot]!
  }

  #rowOffset(slot: number): number {
    return this.#rowsOffset + slot * this.#strideBytes
  }

  get #pages(): number {
    return this.#memory.buffer.byteLength / PAGE_BYTES
  }

  #pagesFor(rows: number): number {
    return Math.ceil(this.#rowOffset(rows) / PAGE_BYTES)
  }

  /** Makes room for a total of `rows` rows. At least doubles the memory when it is full. */
  #makeRoom(rows: number): void {
    const needed = this.#pagesFor(rows)
    if (needed > this.#pages) this.#growTo(Math.max(needed, Math.min(this.#pages * 2, MAX_PAGES)))
    if (rows > this.#facts[RECORD].length) this.#growRows(Math.max(64, rows, 2 * this.#size))
  }

  #growTo(pages: number): void {
    if (pages <= this.#pages) return
    this.#memory.grow(pages - this.#pages)
    this.#views = viewsOf(this.#memory)
  }

  #growRows(rows: number): void {
    if (rows <= this.#facts[RECORD].length) return
    const larger = createColumns(rows)
    for (const [column, values] of this.#facts.entries()) larger[column]!.set(values)
    this.#facts = larger
  }

  /** Returns the slots of allowed records. Keeps those of recent sets until the segment changes. */
  #select(allowed: RecordSet): Selection {
    const known = this.#selections.get(allowed)
    if (known?.version === this.#version) return known
    const isSmall = allowed.size < this.#size * GATHER_SHARE_MAX
    const slots = isSmall ? this.#slotsOf(allowed) : undefined
    const selection = { version: this.#version, slots, mask: isSmall ? undefined : this.#maskOf(allowed) }
    this.#selections.set(allowed, selection)
    return selection
  }

  /** Returns the slots of records in ascending order, so that memory is read in order. */
  #slotsOf(allowed: RecordSet): Uint32Array {
    const slots = new Uint32Array(allowed.size)
    let count = 0
    for (const record of allowed) {
      const slot = this.#slotOf.get(record)
      if (slot !== undefined) slots[count++] = slot
    }
    return slots.subarray(0, count).sort()
  }

  #maskOf(allowed: RecordSet): Uint8Array {
    const mask = new Uint8Array(this.#size)
    const records = this.#facts[RECORD]
    for (let slot = 0; slot < mask.length; slot++) if (allowed.has(records[slot]!)) mask[slot] = 1
    return mask
  }
}

function createColumns(rows: number): FactColumns {
  const create = () => new Float64Array(rows)
  return [create(), create(), create(), create(), create()]
}

/** A query for a segment. */
export interface SegmentQuery {
  readonly query: Float32Array
  readonly k: number
  readonly allowed?: RecordSet | undefined
}

/** A search that reads all rows, and ignores those whose slot is 0 in the mask. */
interface FullScan {
  readonly search: CandidateSearch
  readonly mask: Uint8Array | undefined
}

/** Slots of a set of records, at one version of a segment: a sorted list for a small set, and a mask for a large one. */
interface Selection {
  readonly version: number
  readonly slots: Uint32Array | undefined
  /** 1 for each slot of a record in the set. */
  readonly mask: Uint8Array | undefined
}

interface Views {
  bytes: Int8Array
  floats: Float32Array
  shorts: Int16Array
  words: Uint32Array
  doubles: Float64Array
}

/** Creates typed-array views of a memory. They become invalid when the memory grows. */
function viewsOf({ buffer }: ScanMemory): Views {
  return {
    bytes: new Int8Array(buffer),
    floats: new Float32Array(buffer),
    shorts: new Int16Array(buffer),
    words: new Uint32Array(buffer),
    doubles: new Float64Array(buffer),
  }
}
