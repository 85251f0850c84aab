import type { Metric } from '../content.ts'
import { TopResults } from '../top-results.ts'
import {
  ERROR,
  errorOf,
  FACTOR,
  type FactColumns,
  OFFSET,
  RECORD,
  ROUNDING,
  ROUNDING_SHARE,
  type RowMargins,
  strideOf,
} from './quantized-rows.ts'

/** Largest magnitude of a quantized component of a row. */
const ROW_LEVEL_MAX = 127
/** Largest magnitude of a quantized component of a query. Lower for long vectors, whose sums must fit into 32 bits. */
const QUERY_LEVEL_MAX = 4_095

/** A batch of rows, and their integer dot products with a query. */
export interface ScannedRows {
  /** Dot products, one per row. Entries after the first `count` are ignored. */
  readonly results: Float64Array
  /** Facts about all rows of the segment, by slot. */
  readonly facts: FactColumns
  readonly count: number
  /** Slots of the rows; if omitted, the rows are in consecutive slots from `from` on. */
  readonly slots?: Uint32Array
  readonly from?: number
  /** 0 for each slot to ignore. */
  readonly mask?: Uint8Array | undefined
  /** Margins that are at least those of every row. */
  readonly marginsMax: RowMargins
}

/**
 * Collects the rows that can be among the `k` nearest of a query: those whose upper bound reaches the k-th best lower bound.
 * The bounds are bounds of the key of a row, a number that is faster to compute than the score and has the same order.
 */
export class CandidateSearch {
  readonly query: Float32Array
  readonly k: number
  /** True if all rows have the same score, or no results are requested. */
  readonly isTrivial: boolean
  /** The quantized query, padded with zeros. */
  readonly levels: Int16Array
  /** Converts an upper bound of a key to an upper bound of the score. */
  readonly scoreOfKey: (key: number) => number
  readonly #scale: number
  readonly #errorFactor: number
  readonly #roundingFactor: number
  readonly #slack: number
  readonly #hasOffset: boolean
  readonly #relax: (key: number) => number
  readonly #lowest: TopResults
  readonly #slots: number[] = []
  readonly #keys: number[] = []
  #threshold = Number.NEGATIVE_INFINITY

  constructor(metric: Metric, query: Float32Array, querySquare: number, k: number) {
    const stride = strideOf(query.length)
    const levelMax = Math.min(QUERY_LEVEL_MAX, Math.floor((2 ** 31 - 1) / (ROW_LEVEL_MAX * stride)))
    this.query = query
    this.k = k
    this.isTrivial = k === 0 || (querySquare === 0 && metric !== 'euclidean')
    this.levels = new Int16Array(stride)
    const { scale, error } = quantizeQuery(query, this.levels, levelMax)
    const queryNorm = Math.sqrt(querySquare)
    this.#scale = scale
    this.#errorFactor = (queryNorm + error) * (1 + ROUNDING)
    this.#roundingFactor = error * (1 + ROUNDING) + queryNorm * ROUNDING
    // The square of the query is part of a distance, and is rounded with it.
    this.#slack = metric === 'euclidean' ? querySquare * ROUNDING : 0
    this.#hasOffset = metric === 'euclidean'
    this.#relax = relaxKey[metric](querySquare)
    this.scoreOfKey = scoreOfKey[metric](querySquare)
    this.#lowest = new TopResults(k)
  }

  offer({ results, facts, count, slots, from = 0, mask, marginsMax }: ScannedRows): void {
    const scale = this.#scale
    const errorFactor = this.#errorFactor
    const roundingFactor = this.#roundingFactor
    const slack = this.#slack
    const marginMax = marginsMax.error * errorFactor + marginsMax.roundingShare * roundingFactor + slack
    const factors = facts[FACTOR]
    // Only distances have an offset.
    const offsets = this.#hasOffset ? facts[OFFSET] : undefined
    let threshold = this.#threshold
    for (let i = 0; i < count; i++) {
      // Most rows fail the test below, which reads fewer columns than the bound of the row. It takes half as long in a
      // separate loop.
      if (!slots && !offsets) {
        while (i < count && results[i]! * factors[from + i]! * scale + marginMax < threshold) i++
        if (i === count) break
      }
      const slot = slots ? slots[i]! : from + i
      const product = results[i]! * factors[slot]! * scale
      const offset = offsets ? offsets[slot]! : 0
      if (product + marginMax + offset * (1 - ROUNDING) < threshold) continue
      const margin = facts[ERROR][slot]! * errorFactor + facts[ROUNDING_SHARE][slot]! * roundingFactor + slack
      const key = product + margin + offset * (1 - ROUNDING)
      if (key < threshold || mask?.[slot] === 0) continue
      this.#lowest.offer(product - margin + offset * (1 + ROUNDING), facts[RECORD][slot]!)
      threshold = this.#relax(this.#lowest.minScore)
      this.#slots.push(slot)
      this.#keys.push(key)
    }
    this.#threshold = threshold
  }

  /** Returns the slots of the candidates, with the upper bounds of their keys. */
  candidates(): { slots: number[]; keys: number[] } {
    const keys = this.#keys
    const kept = [...keys.keys()].filter(at => keys[at]! >= this.#threshold)
    return { slots: kept.map(at => this.#slots[at]!), keys: kept.map(at => keys[at]!) }
  }
}

/**
 * Writes a query as integers of at most `levelMax`. The query is about `scale` times the integers, and `error` is the
 * norm of the difference.
 */
function quantizeQuery(
  query: Float32Array,
  levels: Int16Array,
  levelMax: number,
): { scale: number; error: number } {
  const scale = query.reduce((max, value) => Math.max(max, Math.abs(value)), 0) / levelMax
  let squaredError = 0
  for (const [at, value] of query.entries()) {
    const level = scale === 0 ? 0 : Math.round(value / scale)
    levels[at] = level
    squaredError += (value - level * scale) ** 2
  }
  return { scale, error: errorOf(squaredError) }
}

/**
 * Functions that return a lower bound of all keys with the same rounded score as the given key. For `euclidean`, several
 * small distances have the same rounded score, because 1 is added to the distance.
 */
const relaxKey: Record<Metric, (querySquare: number) => (key: number) => number> = {
  cosine: () => key => key,
  dot: () => key => key,
  euclidean: querySquare => key => {
    const distance = Math.sqrt(Math.max(0, querySquare - key))
    return querySquare - (distance + (1 + distance) * 1e-14) ** 2
  },
}

/** Functions that convert an upper bound of a key to an upper bound of the score. */
const scoreOfKey: Record<Metric, (querySquare: number) => (key: number) => number> = {
  cosine: querySquare => key => Math.min(1, key / Math.sqrt(querySquare)),
  dot: () => key => key,
  euclidean: querySquare => key => 1 / (1 + Math.sqrt(Math.max(0, querySquare - key))),
}
