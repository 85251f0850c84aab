import { unitVector } from '../base/unit-vector.ts'

/** A text with the vectors of its tokens. */
export interface EncodedText {
  /** Vector of the text, of length 1. */
  readonly vector: Float32Array
  /** IDs of its tokens, with those of the start and the end. */
  readonly tokens: Uint16Array
  /** Vectors of the tokens one after another, each of length 1: the last layer of the model. */
  readonly tokenVectors: Float32Array
}

/** Returns a text from its tokens and the rows of the last layer, one per token. */
export function createEncodedText(tokens: Uint16Array, rows: Float32Array): EncodedText {
  const width = rows.length / tokens.length
  return { vector: meanOfRows(rows, width), tokens, tokenVectors: unitRows(rows, width) }
}

/** Returns the mean of rows, scaled to length 1. */
export function meanOfRows(rows: Float32Array, width: number): Float32Array {
  const sums = new Float64Array(width)
  for (let from = 0; from < rows.length; from += width)
    for (let at = 0; at < width; at++) sums[at]! += rows[from + at]!
  return unitVector(sums)
}

/** Returns a copy of rows in which each has length 1. */
function unitRows(rows: Float32Array, width: number): Float32Array {
  const units = new Float32Array(rows.length)
  for (let from = 0; from < rows.length; from += width)
    units.set(unitVector(rows.subarray(from, from + width)), from)
  return units
}
