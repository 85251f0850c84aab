import type { ScoredRecord, SpaceKey } from '../content.ts'
import type { NearestQuery, VectorIndex } from './vector-index.ts'

interface WaitingSearch {
  readonly key: SpaceKey
  readonly query: NearestQuery
  resolve(hits: ScoredRecord[]): void
  reject(error: unknown): void
}

/** Maximum number of searches per batch. Other operations of the thread run between batches. */
const BATCH_SEARCHES_MAX = 8

/**
 * Runs vector searches that are waiting at the same time together, so that one pass over the vectors of a space serves
 * several searches.
 */
export class SearchBatches {
  readonly #vectors: VectorIndex
  readonly #waiting: WaitingSearch[] = []

  constructor(vectors: VectorIndex) {
    this.#vectors = vectors
  }

  /** Returns the result of {@link VectorIndex.nearest}. */
  nearest(key: SpaceKey, query: NearestQuery): Promise<ScoredRecord[]> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ key, query, resolve, reject })
      // Searches that arrive in the current iteration of the event loop join the batch.
      if (this.#waiting.length === 1) setImmediate(() => this.#run())
    })
  }

  #run(): void {
    const batches = new Map<string, WaitingSearch[]>()
    for (const search of this.#waiting.splice(0, BATCH_SEARCHES_MAX)) {
      const name = JSON.stringify(search.key)
      batches.set(name, [...(batches.get(name) ?? []), search])
    }
    for (const batch of batches.values()) this.#search(batch)
    if (this.#waiting.length > 0) setImmediate(() => this.#run())
  }

  #search(batch: readonly WaitingSearch[]): void {
    try {
      const queries = batch.map(({ query }) => query)
      const results = this.#vectors.nearestOfEach(batch[0]!.key, queries)
      for (const [at, { resolve }] of batch.entries()) resolve(results[at]!)
    } catch (error) {
      // Only one of the searches may be the reason.
      if (batch.length > 1) for (const search of batch) this.#search([search])
      else batch[0]!.reject(error)
    }
  }
}
