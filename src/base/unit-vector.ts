/** Returns the vector scaled to length 1, as a new Float32Array. A zero vector stays zero. */
export function unitVector(vector: ArrayLike<number>): Float32Array {
  let squares = 0
  for (let index = 0; index < vector.length; index++) squares += vector[index]! * vector[index]!
  const unit = new Float32Array(vector.length)
  if (!(squares > 0)) return unit
  const scale = 1 / Math.sqrt(squares)
  for (let index = 0; index < vector.length; index++) unit[index] = vector[index]! * scale
  return unit
}

/** Returns true for a zero vector, which has no direction. */
export function isZeroVector(vector: ArrayLike<number>): boolean {
  return Array.prototype.every.call(vector, entry => entry === 0)
}
