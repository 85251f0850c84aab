import { editDistance } from '../../base/edit-distance.ts'

/**
 * Returns the candidate with the fewest differences; undefined if more than a third of the characters
 * differ.
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
