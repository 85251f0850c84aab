import { setImmediate as nextTick } from 'node:timers/promises'
import { terms } from '../../base/words.ts'
import { rarityOf } from '../../knowledge/rarity.ts'

/** Parameters of BM25: weight of repetitions, and of the length of a text. */
const saturation = 1.2
const lengthWeight = 0.75
/** Time in milliseconds after which indexing yields to other work. */
const sliceMs = 5

/** Estimates of the memory of a term, and of a text that has it. */
const bytesPerTerm = 120
const bytesPerPosting = 16

/** An index of short texts that ranks them by the words of a query, with BM25. */
export class WordIndex {
  /** Positions in the list of texts, each followed by the number of occurrences, by term. */
  readonly #postings = new Map<string, number[]>()
  readonly #lengths: number[] = []
  #postingCount = 0

  private constructor() {}

  /** Indexes texts, in slices of a few milliseconds. */
  static async of(texts: readonly string[]): Promise<WordIndex> {
    const index = new WordIndex()
    let begunAt = performance.now()
    for (const text of texts) {
      index.#add(text)
      if (performance.now() - begunAt < sliceMs) continue
      await nextTick()
      begunAt = performance.now()
    }
    return index
  }

  /** Memory that the index takes, as an estimate. */
  get bytes(): number {
    return bytesPerTerm * this.#postings.size + bytesPerPosting * this.#postingCount
  }

  /** Returns the scores of the texts that have a word of the query, by their position. */
  scores(query: string): Map<number, number> {
    const scores = new Map<number, number>()
    const averageLength = this.#lengths.reduce((sum, length) => sum + length, 0) / this.#lengths.length
    for (const term of new Set(terms(query))) {
      const postings = this.#postings.get(term) ?? []
      const weight = rarityOf(this.#lengths.length, postings.length / 2)
      for (let at = 0; at < postings.length; at += 2) {
        const [text, count] = [postings[at]!, postings[at + 1]!]
        const length = 1 - lengthWeight + (lengthWeight * this.#lengths[text]!) / averageLength
        const share = (count * (saturation + 1)) / (count + saturation * length)
        scores.set(text, (scores.get(text) ?? 0) + weight * share)
      }
    }
    return scores
  }

  #add(text: string): void {
    const found = terms(text)
    const counts = new Map<string, number>()
    for (const term of found) counts.set(term, (counts.get(term) ?? 0) + 1)
    const position = this.#lengths.push(found.length) - 1
    this.#postingCount += counts.size
    for (const [term, count] of counts) {
      const postings = this.#postings.get(term)
      if (postings) postings.push(position, count)
      else this.#postings.set(copyTerm(term), [position, count])
    }
  }
}

/** Returns a copy of a term that does not keep the text in memory that it was cut from. */
function copyTerm(term: string): string {
  return Buffer.from(term).toString()
}
