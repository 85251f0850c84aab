// Dense matrices with many rows are stored in panels of eight columns. A panel is stored contiguously, row by row, so
// that a product with a sparse matrix reads one cache line per entry. A whole panel often fits into the L2 cache.

const panelWidth = 8

/** A matrix in compressed sparse row format. Row r has the entries from `starts[r]` to `starts[r + 1]`, exclusive. */
export interface SparseRows {
  rows: number
  columns: number
  starts: Uint32Array
  indices: Uint32Array
  values: Float64Array
}

/** A dense `rows` × `width` matrix in panels. `width` is a multiple of eight. */
export interface Panels {
  rows: number
  width: number
  values: Float64Array
}

/** Rounds a width up to whole panels. */
export const roundUpToPanels = (width: number) => Math.ceil(width / panelWidth) * panelWidth

export function createPanels(rows: number, width: number): Panels {
  return { rows, width, values: new Float64Array(rows * width) }
}

/** Returns the index of row 0 of a column. The index of each following row is eight higher. */
const columnStart = (rows: number, column: number) =>
  (column & ~(panelWidth - 1)) * rows + (column & (panelWidth - 1))

export const panelEntry = (matrix: Panels, row: number, column: number) =>
  matrix.values[columnStart(matrix.rows, column) + row * panelWidth]!

/** Returns the transpose of a matrix. The entries of each row are sorted by column. */
export function transpose(matrix: SparseRows): SparseRows {
  const { rows, columns, starts, indices, values } = matrix
  const transposed: SparseRows = {
    rows: columns,
    columns: rows,
    starts: new Uint32Array(columns + 1),
    indices: new Uint32Array(indices.length),
    values: new Float64Array(values.length),
  }
  for (const index of indices) transposed.starts[index + 1]!++
  for (let column = 0; column < columns; column++)
    transposed.starts[column + 1]! += transposed.starts[column]!
  const next = transposed.starts.slice(0, columns)
  for (let row = 0; row < rows; row++) {
    for (let at = starts[row]!; at < starts[row + 1]!; at++) {
      const target = next[indices[at]!]!++
      transposed.indices[target] = row
      transposed.values[target] = values[at]!
    }
  }
  return transposed
}

/**
 * Sets `to` to sparse × from. Takes entries × width multiplications. Processes one panel at a time, so that the sums of
 * a row stay in registers.
 */
export function multiply(sparse: SparseRows, from: Panels, to: Panels): void {
  const { rows, starts, indices, values } = sparse
  const x = from.values
  const y = to.values
  for (let panel = 0; panel < from.width; panel += panelWidth) {
    const source = panel * from.rows
    let target = panel * rows
    for (let row = 0; row < rows; row++, target += panelWidth) {
      let s0 = 0
      let s1 = 0
      let s2 = 0
      let s3 = 0
      let s4 = 0
      let s5 = 0
      let s6 = 0
      let s7 = 0
      const end = starts[row + 1]!
      for (let at = starts[row]!; at < end; at++) {
        const value = values[at]!
        const o = source + indices[at]! * panelWidth
        s0 += value * x[o]!
        s1 += value * x[o + 1]!
        s2 += value * x[o + 2]!
        s3 += value * x[o + 3]!
        s4 += value * x[o + 4]!
        s5 += value * x[o + 5]!
        s6 += value * x[o + 6]!
        s7 += value * x[o + 7]!
      }
      y[target] = s0
      y[target + 1] = s1
      y[target + 2] = s2
      y[target + 3] = s3
      y[target + 4] = s4
      y[target + 5] = s5
      y[target + 6] = s6
      y[target + 7] = s7
    }
  }
}

/** Returns the inner products of two columns of `a` with four columns of `b`, grouped by column of `a`. */
function innerTile(a: Panels, aColumn: number, b: Panels, bColumn: number): number[] {
  const x = a.values
  const y = b.values
  let i = columnStart(a.rows, aColumn)
  let j = columnStart(b.rows, bColumn)
  let s00 = 0
  let s01 = 0
  let s02 = 0
  let s03 = 0
  let s10 = 0
  let s11 = 0
  let s12 = 0
  let s13 = 0
  for (let row = 0; row < a.rows; row++, i += panelWidth, j += panelWidth) {
    const x0 = x[i]!
    const x1 = x[i + 1]!
    const y0 = y[j]!
    const y1 = y[j + 1]!
    const y2 = y[j + 2]!
    const y3 = y[j + 3]!
    s00 += x0 * y0
    s01 += x0 * y1
    s02 += x0 * y2
    s03 += x0 * y3
    s10 += x1 * y0
    s11 += x1 * y1
    s12 += x1 * y2
    s13 += x1 * y3
  }
  return [s00, s01, s02, s03, s10, s11, s12, s13]
}

/**
 * Returns aᵀb, which must be symmetric, for matrices of equal width. Computes only the lower triangle, and copies it to
 * the upper one.
 */
export function innerProducts(a: Panels, b: Panels): Float64Array {
  const { width } = a
  const products = new Float64Array(width * width)
  for (let row = 0; row < width; row += 2) {
    for (let column = 0; column <= row; column += 4) {
      const tile = innerTile(a, row, b, column)
      for (let at = 0; at < tile.length; at++) {
        const i = row + (at >> 2)
        const j = column + (at & 3)
        products[i * width + j] = tile[at]!
        products[j * width + i] = tile[at]!
      }
    }
  }
  return products
}

/** Replaces `matrix` with matrix × upper. `upper` is an upper triangular width × width matrix, stored row by row. */
export function multiplyByUpper(matrix: Panels, upper: Float64Array): void {
  const { rows, width, values } = matrix
  const line = new Float64Array(width)
  const product = new Float64Array(width)
  for (let row = 0; row < rows; row++) {
    for (let j = 0; j < width; j++) line[j] = values[columnStart(rows, j) + row * panelWidth]!
    for (let j = 0; j < width; j += 4) {
      let s0 = 0
      let s1 = 0
      let s2 = 0
      let s3 = 0
      for (let i = 0, o = j; i < j + 4; i++, o += width) {
        const x = line[i]!
        s0 += x * upper[o]!
        s1 += x * upper[o + 1]!
        s2 += x * upper[o + 2]!
        s3 += x * upper[o + 3]!
      }
      product[j] = s0
      product[j + 1] = s1
      product[j + 2] = s2
      product[j + 3] = s3
    }
    for (let j = 0; j < width; j++) values[columnStart(rows, j) + row * panelWidth] = product[j]!
  }
}
