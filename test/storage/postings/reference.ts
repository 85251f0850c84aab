import type { ScoredRecord } from '../../../src/storage/content.ts'
import type { VisibleRecords } from '../../../src/storage/sqlite/postings/record-masks.ts'
import type { PostingRecord } from '../../../src/storage/sqlite/postings/segment-builder.ts'

/** Counts the occurrences of each term. */
export function countTerms(terms: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const term of terms) counts.set(term, (counts.get(term) ?? 0) + 1)
  return counts
}

/** A posting store in memory, which computes each result from the records themselves. */
export class ReferenceIndex {
  readonly records = new Map<number, PostingRecord>()

  add(records: readonly PostingRecord[]): void {
    for (const record of records) this.records.set(record.record, record)
  }

  remove(records: readonly number[]): void {
    for (const record of records) this.records.delete(record)
  }

  visible(visible: VisibleRecords | undefined): PostingRecord[] {
    const matching = visible && new Set(Array.from(visible.read()))
    return [...this.records.values()].filter(({ record }) => matching?.has(record) ?? true)
  }

  /** Returns all scores, best first. */
  search(
    words: readonly { terms: readonly string[]; weight: number }[],
    scope: VisibleRecords | undefined,
    titleWeight = 3,
  ): ScoredRecord[] {
    const visible = this.visible(scope)
    const lengthOf = ({ title, text }: PostingRecord) =>
      [...title.values(), ...text.values()].reduce((sum, count) => sum + count, 0)
    const average = visible.reduce((sum, record) => sum + lengthOf(record), 0) / visible.length
    const scored = visible.map(record => {
      let score = 0
      for (const { terms, weight } of words) {
        const distinct = [...new Set(terms)]
        const count = (counts: ReadonlyMap<string, number>) =>
          distinct.reduce((sum, term) => sum + (counts.get(term) ?? 0), 0)
        const frequency = count(record.text) + titleWeight * count(record.title)
        if (frequency === 0) continue
        const containing = visible.filter(({ title, text }) =>
          terms.some(term => title.has(term) || text.has(term)),
        ).length
        const rarity = Math.log(1 + (visible.length - containing + 0.5) / (containing + 0.5))
        const norm = 1.2 * (1 - 0.75 + (0.75 * lengthOf(record)) / average)
        score += (weight * rarity * frequency * 2.2) / (frequency + norm)
      }
      return { record: record.record, score }
    })
    return scored.filter(({ score }) => score > 0).sort((a, b) => b.score - a.score || a.record - b.record)
  }
}
