import { terms } from '../../base/words.ts'
import { WorkPacer } from '../../base/work-pacer.ts'
import { wordWeight } from '../../knowledge/search/word-weights.ts'

/** Parameters of BM25: the weight of repeated occurrences of a term (k1), and the weight of text length (b). */
const saturation = 1.2
const lengthWeight = 0.75

/** Estimated memory in bytes for a term, and for each text that contains it. */
const bytesPerTerm = 120
const bytesPerPosting = 16

/** An index of short texts that ranks them by the words of a query, with BM25. */
export class WordIndex {
  /** By term, the positions of the texts that contain it, each followed by the number of occurrences. */
  readonly #postings = new Map<string, number[]>()
  readonly #lengths: number[] = []
  #postingCount = 0

  private constructor() {}

  /** Indexes texts. Yields to the event loop every few milliseconds. */
  static async create(texts: readonly string[]): Promise<WordIndex> {
    const index = new WordIndex()
    const pacer = new WorkPacer()
    for (const text of texts) {
      index.#add(text)
      if (pacer.isDue) await pacer.yield()
    }
    return index
  }

  /** Estimated memory of the index, in bytes. */
  get bytes(): number {
    return bytesPerTerm * this.#postings.size + bytesPerPosting * this.#postingCount
  }

  /** Returns the scores of the texts that contain a word of the query, by text position. */
  scores(query: string): Map<number, number> {
    const scores = new Map<number, number>()
    const averageLength = this.#lengths.reduce((sum, length) => sum + length, 0) / this.#lengths.length
    for (const term of new Set(terms(query))) {
      const postings = this.#postings.get(term) ?? []
      const weight = wordWeight(this.#lengths.length, postings.length / 2)
      for (let at = 0; at < postings.length; at += 2) {
        const [text, count] = [postings[at]!, postings[at + 1]!]
        const length = 1 - lengthWeight + (lengthWeight * this.#lengths[text]!) / averageLength
        const termScore = (count * (saturation + 1)) / (count + saturation * length)
        scores.set(text, (scores.get(text) ?? 0) + weight * termScore)
      }
    }
    return scores
  }

  #add(text: string): void {
    const textTerms = terms(text)
    const counts = new Map<string, number>()
    for (const term of textTerms) counts.set(term, (counts.get(term) ?? 0) + 1)
    const position = this.#lengths.push(textTerms.length) - 1
    this.#postingCount += counts.size
    for (const [term, count] of counts) {
      const postings = this.#postings.get(term)
      if (postings) postings.push(position, count)
      else this.#postings.set(copyTerm(term), [position, count])
    }
  }
}

/** Returns a copy of a term. A term that is a slice of a text would keep the whole text in memory. */
function copyTerm(term: string): string {
  return Buffer.from(term).toString()
}
