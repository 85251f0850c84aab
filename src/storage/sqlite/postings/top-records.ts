import type { ScoredRecord } from '../../content.ts'

/**
 * The best of a sequence of records with ascending numbers. Of equal scores, the lower record is better.
 */
export class TopRecords {
  readonly #limit: number
  /** A binary heap, with the worst record first. */
  readonly #heap: ScoredRecord[] = []
  /** Scores up to this one are not among the best. */
  threshold: number

  constructor(limit: number) {
    this.#limit = limit
    this.threshold = limit > 0 ? 0 : Number.POSITIVE_INFINITY
  }

  /** Adds a record whose score is above the threshold. */
  add(record: number, score: number): void {
    const added = { record, score }
    if (this.#heap.length < this.#limit) this.#raise(this.#heap.push(added) - 1)
    else {
      this.#heap[0] = added
      this.#sink()
    }
    if (this.#heap.length === this.#limit) this.threshold = this.#heap[0]!.score
  }

  /** Returns the best records, best first. */
  sorted(): ScoredRecord[] {
    return this.#heap.sort((a, b) => b.score - a.score || a.record - b.record)
  }

  #raise(from: number): void {
    const heap = this.#heap
    for (let at = from; at > 0; ) {
      const parent = (at - 1) >> 1
      if (!isWorse(heap[at]!, heap[parent]!)) return
      ;[heap[at], heap[parent]] = [heap[parent]!, heap[at]!]
      at = parent
    }
  }

  #sink(): void {
    const heap = this.#heap
    for (let at = 0; ; ) {
      let worst = 2 * at + 1
      if (worst >= heap.length) return
      if (worst + 1 < heap.length && isWorse(heap[worst + 1]!, heap[worst]!)) worst++
      if (!isWorse(heap[worst]!, heap[at]!)) return
      ;[heap[at], heap[worst]] = [heap[worst]!, heap[at]!]
      at = worst
    }
  }
}

function isWorse(a: ScoredRecord, b: ScoredRecord): boolean {
  return a.score < b.score || (a.score === b.score && a.record > b.record)
}
