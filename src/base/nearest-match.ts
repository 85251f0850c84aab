import { editDistance } from './edit-distance.ts'

/**
 * Returns the candidate with the smallest edit distance to a word, ignoring case. The distance may be at most a
 * third of the length of the longer word, but a distance of 1 is always accepted. Returns undefined if no
 * candidate is that close.
 */
export function nearestMatch(word: string, candidates: readonly string[]): string | undefined {
  const ranked = candidates
    .map(candidate => ({ candidate, edits: editDistance(word.toLowerCase(), candidate.toLowerCase()) }))
    .filter(
      ({ candidate, edits }) => edits <= Math.max(1, Math.floor(Math.max(word.length, candidate.length) / 3)),
    )
    .sort((a, b) => a.edits - b.edits)
  return ranked[0]?.candidate
}
