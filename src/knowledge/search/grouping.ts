import { documentKeyText, type ShapedCandidate } from './shaped-candidate.ts'

/** Keeps the first candidates of each document. Candidates without a document are kept. */
export function groupByDocument(
  candidates: readonly ShapedCandidate[],
  perDocument: number | undefined,
): ShapedCandidate[] {
  if (perDocument === undefined) return [...candidates]
  const counts = new Map<string, number>()
  const kept: { candidate: ShapedCandidate; from: number; document: string | null }[] = []
  for (const [index, candidate] of candidates.entries()) {
    const document = documentKeyText(candidate)
    const count = document === null ? 0 : (counts.get(document) ?? 0)
    if (document !== null) counts.set(document, count + 1)
    if (count < perDocument) kept.push({ candidate, from: index + 1, document })
  }
  return kept.map(({ candidate, from, document }, index) => {
    const omitted = document === null ? 0 : Math.max(0, counts.get(document)! - perDocument)
    return { ...candidate, changes: { ...candidate.changes, group: { omitted, from, to: index + 1 } } }
  })
}
