import { randomNumbers } from '../../base/random-numbers.ts'
import {
  createPanels,
  innerProducts,
  multiply,
  multiplyByUpper,
  type Panels,
  type SparseRows,
  transpose,
} from './panels.ts'

/** A column contains only rounding errors if its squared length is below this share of the largest squared length. */
const emptyColumnShare = 1e-24
/**
 * A column depends on earlier columns if at most this share of its squared length remains after its projections on them
 * are subtracted.
 */
const dependentShare = 1e-11

interface BasisOptions {
  width: number
  iterations: number
  seed: number
  onRound(done: number, rounds: number): void
}

/**
 * Returns the upper triangular matrix T that makes the columns of MT orthonormal, computed from the inner products
 * MᵀM. T is the inverse of the Cholesky factor, after the columns are scaled to unit length. Columns that are empty
 * or depend on earlier columns become zero, which avoids divisions by zero. A matrix of rank r keeps r nonzero columns.
 */
function whitening(products: Float64Array, width: number): Float64Array {
  let largest = 0
  for (let j = 0; j < width; j++) largest = Math.max(largest, products[j * width + j]!)
  const scales = Float64Array.from({ length: width }, (_, j) => {
    const squared = products[j * width + j]!
    return squared > largest * emptyColumnShare ? 1 / Math.sqrt(squared) : 0
  })
  const lower = new Float64Array(width * width)
  const inverse = new Float64Array(width * width)
  for (let row = 0; row < width; row++) {
    let remainder = scales[row]! > 0 ? 1 : 0
    for (let column = 0; column < row; column++) {
      let sum = products[row * width + column]! * scales[row]! * scales[column]!
      for (let t = 0; t < column; t++) sum -= lower[row * width + t]! * lower[column * width + t]!
      const value = sum * inverse[column * width + column]!
      lower[row * width + column] = value
      remainder -= value * value
    }
    if (!(remainder > dependentShare)) {
      lower.fill(0, row * width, row * width + row)
      continue
    }
    const reciprocal = 1 / Math.sqrt(remainder)
    inverse[row * width + row] = reciprocal
    for (let column = 0; column < row; column++) {
      let sum = 0
      for (let t = column; t < row; t++) sum += lower[row * width + t]! * inverse[t * width + column]!
      inverse[row * width + column] = -sum * reciprocal
    }
  }
  const upper = new Float64Array(width * width)
  for (let row = 0; row < width; row++) {
    for (let column = row; column < width; column++)
      upper[row * width + column] = inverse[column * width + row]! * scales[row]!
  }
  return upper
}

/**
 * Returns an orthonormal basis, `matrix.columns` × `width`, of the directions in which the rows of the matrix
 * vary most. These are the leading right singular vectors, except for a rotation, which does not affect cosines.
 * Columns beyond the rank are zero.
 *
 * Uses randomized subspace iteration with Cholesky QR. Orthonormalizes only matrices with min(rows, columns) rows.
 * Takes 2 × entries × width + min(rows, columns) × width² multiplications per iteration.
 *
 * @see Halko, Martinsson and Tropp, "Finding structure with randomness", SIAM Review 53(2), 2011, algorithm
 * 4.4
 */
export function rowBasis(matrix: SparseRows, { width, iterations, seed, onRound }: BasisOptions): Panels {
  const transposed = transpose(matrix)
  const hasFewerRows = matrix.rows <= matrix.columns
  const [small, large] = hasFewerRows ? [matrix, transposed] : [transposed, matrix]
  const next = randomNumbers(seed)
  let basis = createPanels(small.rows, width)
  let image = createPanels(small.rows, width)
  const largeProduct = createPanels(large.rows, width)
  for (let index = 0; index < basis.values.length; index++) basis.values[index] = 2 * next() - 1
  for (let round = 0; round < iterations; round++) {
    multiply(large, basis, largeProduct)
    multiply(small, largeProduct, image)
    multiplyByUpper(image, whitening(innerProducts(image, image), width))
    ;[basis, image] = [image, basis]
    onRound(round + 1, iterations)
  }
  if (!hasFewerRows) return basis
  multiply(large, basis, largeProduct)
  multiply(small, largeProduct, image)
  multiplyByUpper(basis, whitening(innerProducts(basis, image), width))
  multiply(large, basis, largeProduct)
  return largeProduct
}
