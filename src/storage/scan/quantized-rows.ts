import type { Metric } from '../content.ts'

/** Version of {@link QuantizedRows}. Increase it when equal vectors are quantized to other numbers or bytes. */
export const QUANTIZED_FORMAT = 1

/** Components per iteration of the scan's inner loop. Rows are padded with zeros to a multiple of it. */
const LANES = 16

/** Covers the rounding of double-precision sums of up to 16,384 terms, relative to the product of the norms. */
export const ROUNDING = 1e-9

/** Numbers per row in `facts`. */
export const FACTS = 5
/** Positions of the numbers of a row: its record, and its terms of the bounds; see {@link boundTerms}. */
export const [RECORD, FACTOR, ERROR, ROUNDING_SHARE, OFFSET] = [0, 1, 2, 3, 4]

/** Quantized vectors of one dimension, for one metric. They depend only on the exact vectors. */
export interface QuantizedRows {
  /** `FACTS` numbers per row. */
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

/** Returns the bytes of the integers of a row. */
export function strideOf(dimension: number): number {
  return Math.ceil(dimension / LANES) * LANES
}

/** Returns true if rows have the lengths of `count` rows, and their records ascend from `first` to `last`. */
export function areQuantizedRows(
  { facts, levels }: QuantizedRows,
  { dimension, count, first, last }: { dimension: number; count: number; first: number; last: number },
): boolean {
  if (count < 1 || facts.length !== count * FACTS || levels.length !== count * strideOf(dimension))
    return false
  for (let row = 1; row < count; row++)
    if (!(facts[row * FACTS + RECORD]! > facts[(row - 1) * FACTS + RECORD]!)) return false
  return facts[RECORD] === first && facts[(count - 1) * FACTS + RECORD] === last
}

/** Returns the rows of some records. */
export function selectRows(
  { facts, levels }: QuantizedRows,
  dimension: number,
  records: ReadonlySet<number>,
): QuantizedRows {
  const stride = strideOf(dimension)
  const selected = { facts: facts.slice(), levels: levels.slice() }
  let count = 0
  for (let row = 0; row * FACTS < facts.length; row++) {
    if (!records.has(facts[row * FACTS + RECORD]!)) continue
    selected.facts.copyWithin(count * FACTS, row * FACTS, (row + 1) * FACTS)
    selected.levels.copyWithin(count * stride, row * stride, (row + 1) * stride)
    count++
  }
  return {
    facts: selected.facts.subarray(0, count * FACTS),
    levels: selected.levels.subarray(0, count * stride),
  }
}
