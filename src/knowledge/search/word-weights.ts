import type { Occurrences } from '../../storage/content.ts'

/**
 * Returns the weight of a word in a question. It is the inverse document frequency of BM25: ln(1 + (N - n + 0.5) /
 * (n + 0.5)), where N is the number of records, and n is the number of records that contain the word. The weight is
 * always above 0. It is highest for a word that no record contains.
 */
export function wordWeight(records: number, containing: number): number {
  return Math.log1p((records - containing + 0.5) / (containing + 0.5))
}

/** Returns the sum of the weights of a question's words; above 0 if the question has words. */
export function totalWeight({ records, words }: Occurrences): number {
  return words.reduce((total, word) => total + wordWeight(records, word.records), 0)
}

/**
 * Computes which share of a question's words each record contains, from 0 to 1. Rare words count more. The share of a
 * record does not depend on other records in the result.
 *
 * @returns shares by record; the share of a missing record is 0
 */
export function coverageByRecord({ records, words }: Occurrences): Map<number, number> {
  const weights = new Map<number, number>()
  let total = 0
  for (const word of words) {
    const weight = wordWeight(records, word.records)
    total += weight
    for (const record of word.among) weights.set(record, (weights.get(record) ?? 0) + weight)
  }
  return new Map(Array.from(weights, ([record, weight]) => [record, weight / total]))
}

/**
 * Returns the share of a question's words that are not unknown, 0 to 1. Rare words count more. Words that no record
 * contains are ignored, because they cannot be found.
 */
export function knownShare(unknown: ReadonlySet<string>, { records, words }: Occurrences): number {
  let known = 0
  let total = 0
  for (const word of words) {
    if (word.records === 0) continue
    const weight = wordWeight(records, word.records)
    total += weight
    if (!unknown.has(word.word)) known += weight
  }
  return total === 0 ? 1 : known / total
}
