import { editDistance } from '../base/edit-distance.ts'

/** The candidate that was probably meant: at most a third of the letters differ. */
export function nearest(word: string, candidates: readonly string[]): string | undefined {
  const close = Math.max(1, Math.floor(word.length / 3))
  const ranked = candidates
    .map(candidate => ({ candidate, edits: editDistance(word.toLowerCase(), candidate.toLowerCase()) }))
    .sort((a, b) => a.edits - b.edits)
  return ranked[0] && ranked[0].edits <= close ? ranked[0].candidate : undefined
}
