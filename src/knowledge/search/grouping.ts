import type { ShapedCandidate } from './shaped-candidate.ts'

/** Keeps the first candidates of each document. Candidates without a document are kept. */
export function groupByDocument(
  candidates: readonly ShapedCandidate[],
  perDocument: number | undefined,
): ShapedCandidate[] {
  if (perDocument === undefined) return [...candidates]
  const counts = new Map<string, number>()
  const kept: { candidate: ShapedCandidate; from: number; documentId: string | null }[] = []
  for (const [index, candidate] of candidates.entries()) {
    const { documentId } = candidate.view
    const count = documentId === null ? 0 : (counts.get(documentId) ?? 0)
    if (documentId !== null) counts.set(documentId, count + 1)
    if (count < perDocument) kept.push({ candidate, from: index + 1, documentId })
  }
  return kept.map(({ candidate, from, documentId }, index) => {
    const omitted = documentId === null ? 0 : Math.max(0, counts.get(documentId)! - perDocument)
    return { ...candidate, changes: { ...candidate.changes, group: { omitted, from, to: index + 1 } } }
  })
}
