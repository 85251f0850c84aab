import type { Analyzer } from '../../src/base/analysis/analyzer.ts'

const k1 = 1.2
const b = 0.75

/** Occurrences of terms by field, with the weight of the field. */
export interface RankedText {
  readonly id: string
  readonly counts: ReadonlyMap<string, number>
  readonly words: number
}

/** Analyzes a text, and a title that counts three times. */
export function rankedText(analyzer: Analyzer, id: string, text: string, title = ''): RankedText {
  const [body, head] = [analyzer.countTerms(text), analyzer.countTerms(title)]
  const counts = new Map(body.counts)
  for (const [term, count] of head.counts) counts.set(term, (counts.get(term) ?? 0) + 3 * count)
  return { id, counts, words: body.words + head.words }
}

/** Ranks all texts that hold any of the terms by BM25, best first; equal scores in order. */
export function rankByBm25(texts: readonly RankedText[], terms: readonly string[]): string[] {
  const average = texts.reduce((sum, { words }) => sum + words, 0) / texts.length
  const scores = new Map<string, number>()
  for (const term of new Set(terms)) {
    const holders = texts.filter(({ counts }) => counts.has(term))
    const idf = Math.log(1 + (texts.length - holders.length + 0.5) / (holders.length + 0.5))
    for (const { id, counts, words } of holders) {
      const count = counts.get(term)!
      const score = (idf * count * (k1 + 1)) / (count + k1 * (1 - b + (b * words) / average))
      scores.set(id, (scores.get(id) ?? 0) + score)
    }
  }
  return [...scores].sort((x, y) => y[1] - x[1]).map(([id]) => id)
}
