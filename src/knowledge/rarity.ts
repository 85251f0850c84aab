import type { Occurrences } from '../storage/content.ts'

/**
 * Returns the weight of a word in a question, as in BM25: ln(1 + (N - n + 0.5) / (n + 0.5)), if n of N
 * records contain it. Above 0 for every word, and highest for a word that no record contains.
 */
export function rarityOf(records: number, holding: number): number {
  return Math.log1p((records - holding + 0.5) / (holding + 0.5))
}

/** Returns the sum of the weights of all words of a question; above 0 if it has words. */
export function totalRarity({ records, words }: Occurrences): number {
  return words.reduce((total, word) => total + rarityOf(records, word.records), 0)
}

/**
 * Computes the share of a question that each record contains, from 0 (none of its words) to 1 (all of them).
 * Rare words count more. Other results have no influence on the share.
 *
 * @returns shares by record; the share of a missing record is 0
 */
export function coverageByRecord({ records, words }: Occurrences): Map<number, number> {
  const held = new Map<number, number>()
  let total = 0
  for (const word of words) {
    const weight = rarityOf(records, word.records)
    total += weight
    for (const record of word.among) held.set(record, (held.get(record) ?? 0) + weight)
  }
  return new Map(Array.from(held, ([record, weight]) => [record, weight / total]))
}

/**
 * Returns the share of a question, 0 to 1, that remains without some of its words. Rare words count more.
 * Words that no record contains do not count, because they cannot be found.
 */
export function shareWithoutWords(unknown: ReadonlySet<string>, { records, words }: Occurrences): number {
  let known = 0
  let total = 0
  for (const word of words) {
    if (word.records === 0) continue
    const weight = rarityOf(records, word.records)
    total += weight
    if (!unknown.has(word.word)) known += weight
  }
  return total === 0 ? 1 : known / total
}
