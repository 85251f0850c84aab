/** Returns the dot product of two vectors of the same length: their cosine, if both have length 1. */
export function dotProduct(a: Float32Array, b: Float32Array): number {
  let sum = 0
  for (let index = 0; index < a.length; index++) sum += a[index]! * b[index]!
  return sum
}
