/**
 * Returns the minimum number of insertions, deletions and replacements that turn one string into another. Takes time
 * proportional to the product of their lengths.
 *
 * @see Wagner and Fischer, "The string-to-string correction problem", JACM 21(1), 1974
 */
export function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index)
  for (let i = 1; i <= from.length; i++) {
    const next = [i]
    for (let j = 1; j <= to.length; j++) {
      const replacementCost = row[j - 1]! + (from[i - 1] === to[j - 1] ? 0 : 1)
      next.push(Math.min(replacementCost, row[j]! + 1, next[j - 1]! + 1))
    }
    row = next
  }
  return row[to.length]!
}
