import type { Occurrences } from '../storage/content.ts'

/**
 * Weight of a word in a question: ln(1 + (N - n + 0.5) / (n + 0.5)) where n of N records hold it, as in BM25. Above 0 for
 * every word, and highest for one that no record holds.
 */
export function rarity(records: number, holding: number): number {
  return Math.log1p((records - holding + 0.5) / (holding + 0.5))
}

/**
 * Share of a question that each record holds, from 0 (none of its words) to 1 (all of them); rare words count more. It
 * depends on the question, the record and the counts alone, not on what else was found.
 *
 * @returns shares by record; a record that is missing holds nothing
 */
export function coverages({ records, words }: Occurrences): Map<number, number> {
  const held = new Map<number, number>()
  let total = 0
  for (const word of words) {
    const weight = rarity(records, word.records)
    total += weight
    for (const record of word.among) held.set(record, (held.get(record) ?? 0) + weight)
  }
  return new Map(Array.from(held, ([record, weight]) => [record, weight / total]))
}

/**
 * Share of a question, 0 to 1, that remains without some of its words; rare words count more. Words that no record holds
 * do not count, because they cannot be found.
 */
export function shareWithout(unknown: ReadonlySet<string>, { records, words }: Occurrences): number {
  let known = 0
  let total = 0
  for (const word of words) {
    if (word.records === 0) continue
    const weight = rarity(records, word.records)
    total += weight
    if (!unknown.has(word.word)) known += weight
  }
  return total === 0 ? 1 : known / total
}
