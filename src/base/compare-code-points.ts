/**
 * Compares two strings by code point, which is the order of their UTF-8 bytes: negative, zero or positive.
 *
 * The `<` of JavaScript compares UTF-16 units, and puts U+1F600 before U+FB01; databases do not.
 */
export function compareCodePoints(a: string, b: string): number {
  const shorter = Math.min(a.length, b.length)
  let at = 0
  while (at < shorter && a.charCodeAt(at) === b.charCodeAt(at)) at++
  if (at === shorter) return a.length - b.length
  // If the differing units are the second halves of surrogate pairs, the code points start one unit earlier.
  if (at > 0 && isHighSurrogate(a.charCodeAt(at - 1))) {
    const difference = a.codePointAt(at - 1)! - b.codePointAt(at - 1)!
    if (difference !== 0) return difference
  }
  return a.codePointAt(at)! - b.codePointAt(at)!
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff
}
