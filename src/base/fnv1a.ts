const offsetBasis = 0x811c9dc5
const prime = 0x01000193

/**
 * Returns the FNV-1a hash of the UTF-16 code units of a string, as an unsigned 32-bit integer. It is the same on every
 * machine, and is not cryptographic.
 *
 * @param basis  initial value; different values result in different hashes of the same string
 * @see http://www.isthe.com/chongo/tech/comp/fnv/
 */
export function fnv1a(text: string, basis: number = offsetBasis): number {
  let state = basis
  for (let index = 0; index < text.length; index++) state = Math.imul(state ^ text.charCodeAt(index), prime)
  return state >>> 0
}

/** Spreads differences between 32-bit hashes over all bits (the last step of MurmurHash3). Returns an unsigned integer. */
export function mixBits(hash: number): number {
  let bits = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35)
  return (bits ^ (bits >>> 16)) >>> 0
}
