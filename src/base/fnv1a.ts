const offsetBasis = 0x811c9dc5
const prime = 0x01000193

/**
 * Returns the FNV-1a hash of UTF-16 units: unsigned 32 bits, the same on every machine, not cryptographic.
 *
 * @param basis  start value; another one results in another hash of the same text
 * @see http://www.isthe.com/chongo/tech/comp/fnv/
 */
export function fnv1a(text: string, basis: number = offsetBasis): number {
  let state = basis
  for (let at = 0; at < text.length; at++) state = Math.imul(state ^ text.charCodeAt(at), prime)
  return state >>> 0
}
