import type { ScoredRecord } from './content.ts'

/** Orders results best first; results with equal scores by ascending record. */
function byRank(a: ScoredRecord, b: ScoredRecord): number {
  return b.score - a.score || a.record - b.record
}

/** The `k` best results so far, as a binary heap with the worst on top. */
export class TopResults {
  readonly #k: number
  readonly #heap: ScoredRecord[] = []
  /** Results with a lower score cannot be among the best. For most rows, the caller compares only this. */
  minScore = Number.NEGATIVE_INFINITY

  constructor(k: number) {
    this.#k = k
  }

  offer(score: number, record: number): void {
    if (score < this.minScore) return
    const item = { record, score }
    if (this.#heap.length < this.#k) this.#siftUp(item)
    else if (this.#k > 0 && byRank(item, this.#heap[0]!) < 0) this.#siftDown(item)
    if (this.#heap.length === this.#k) this.minScore = this.#heap[0]?.score ?? Number.POSITIVE_INFINITY
  }

  /** Returns the results, best first. */
  ranked(): ScoredRecord[] {
    return this.#heap.toSorted(byRank)
  }

  #siftUp(item: ScoredRecord): void {
    let at = this.#heap.length
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (byRank(this.#heap[parent]!, item) > 0) break
      this.#heap[at] = this.#heap[parent]!
      at = parent
    }
    this.#heap[at] = item
  }

  #siftDown(item: ScoredRecord): void {
    const { length } = this.#heap
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= length) break
      if (child + 1 < length && byRank(this.#heap[child]!, this.#heap[child + 1]!) < 0) child++
      if (byRank(item, this.#heap[child]!) > 0) break
      this.#heap[at] = this.#heap[child]!
      at = child
    }
    this.#heap[at] = item
  }
}
