import type { Metric } from '../content.ts'

/** Version of {@link QuantizedRows}. Increase it when equal vectors are quantized to other numbers or bytes. */
export const QUANTIZED_FORMAT = 1

/** Components per iteration of the scan's inner loop. Rows are padded with zeros to a multiple of it. */
const LANES = 16

/** Covers the rounding of double-precision sums of up to 16,384 terms, relative to the product of the norms. */
export const ROUNDING = 1e-9

/** Number of columns of facts. */
export const FACTS = 5
/** Columns: the record of a row, and its terms of the bounds; see {@link boundTerms}. */
export const [RECORD, FACTOR, ERROR, ROUNDING_SHARE, OFFSET] = [0, 1, 2, 3, 4] as const

/** Facts about rows, by column and row. A scan reads few columns of most rows, so each column has its own memory. */
export type FactColumns = readonly [
  record: Float64Array,
  factor: Float64Array,
  error: Float64Array,
  roundingShare: Float64Array,
  offset: Float64Array,
]

/** Quantized vectors of one dimension, for one metric. They depend only on the exact vectors. */
export interface QuantizedRows {
  /** `FACTS` columns of one number per row, one after another. */
  readonly facts: Float64Array
  /** The 8-bit integers of each row, `strideOf` bytes per row. */
  readonly levels: Int8Array
}

/** The terms of a row that determine how far its bounds are apart. */
export interface RowMargins {
  readonly error: number
  readonly roundingShare: number
}

/**
 * Functions that return the terms of the bounds of a row's key: the factor of the integer dot product, the quantization
 * error, the share of the rounding error, and the offset.
 */
export const boundTerms: Record<
  Metric,
  (scale: number, error: number, norm: number) => [number, number, number, number]
> = {
  cosine: (scale, error, norm) => (norm === 0 ? [0, 0, 0, 0] : [scale / norm, error / norm, 1, 0]),
  dot: (scale, error, norm) => [scale, error, norm, 0],
  // The key is 2·x·y - |x|², which differs from the negative squared distance by the square of the query.
  euclidean: (scale, error, norm) => [2 * scale, 2 * error, 2 * norm, -norm * norm],
}

/** Returns the norm of a vector of errors, rounded up. */
export function errorOf(squaredError: number): number {
  return Math.sqrt(squaredError) * (1 + ROUNDING)
}

/** Returns the number of bytes per row of `levels`, including padding. */
export function strideOf(dimension: number): number {
  return Math.ceil(dimension / LANES) * LANES
}

/** Returns true if the arrays contain exactly `count` rows, and the record numbers ascend from `first` to `last`. */
export function areQuantizedRows(
  { facts, levels }: QuantizedRows,
  { dimension, count, first, last }: { dimension: number; count: number; first: number; last: number },
): boolean {
  if (count < 1 || facts.length !== count * FACTS || levels.length !== count * strideOf(dimension))
    return false
  const records = facts.subarray(RECORD * count, (RECORD + 1) * count)
  for (let row = 1; row < count; row++) if (!(records[row]! > records[row - 1]!)) return false
  return records[0] === first && records[count - 1] === last
}

/** Returns the rows of some records. */
export function selectRows(
  { facts, levels }: QuantizedRows,
  dimension: number,
  records: ReadonlySet<number>,
): QuantizedRows {
  const [count, stride] = [facts.length / FACTS, strideOf(dimension)]
  const kept = Uint32Array.from({ length: count }, (_, row) => row).filter(row =>
    records.has(facts[RECORD * count + row]!),
  )
  const selected = {
    facts: new Float64Array(kept.length * FACTS),
    levels: new Int8Array(kept.length * stride),
  }
  for (const [at, row] of kept.entries()) {
    for (let column = 0; column < FACTS; column++)
      selected.facts[column * kept.length + at] = facts[column * count + row]!
    selected.levels.set(levels.subarray(row * stride, (row + 1) * stride), at * stride)
  }
  return selected
}
