/** Edits (insert, delete, replace) that turn one word into another. Wagner and Fischer, O(n·m). */
export function distance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index)
  for (let i = 1; i <= from.length; i++) {
    const next = [i]
    for (let j = 1; j <= to.length; j++) {
      const replaced = row[j - 1]! + (from[i - 1] === to[j - 1] ? 0 : 1)
      next.push(Math.min(replaced, row[j]! + 1, next[j - 1]! + 1))
    }
    row = next
  }
  return row[to.length]!
}

/** The candidate that was probably meant: at most a third of the letters differ. */
export function nearest(word: string, candidates: readonly string[]): string | undefined {
  const close = Math.max(1, Math.floor(word.length / 3))
  const ranked = candidates
    .map(candidate => ({ candidate, edits: distance(word.toLowerCase(), candidate.toLowerCase()) }))
    .sort((a, b) => a.edits - b.edits)
  return ranked[0] && ranked[0].edits <= close ? ranked[0].candidate : undefined
}
