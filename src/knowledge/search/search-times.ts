import { LRUCache } from 'lru-cache'
import { stopwatch } from '../../base/clock.ts'
import { percentile } from '../../base/percentile.ts'
import type { KnowledgeBaseStats } from '../../contract/knowledge.ts'
import { limits } from '../../contract/limits.ts'
import { type BaseKey, baseKeyText } from '../document-key.ts'

/** Maximum number of knowledge bases whose times are kept. The least recently searched are dropped first. */
const BASES_MAX = 1_000

type SearchMode = KnowledgeBaseStats['searches'][number]['mode']
const modes: readonly SearchMode[] = ['hybrid', 'lexical', 'vector']

/** Times of the last searches of each knowledge base, by mode. Kept in memory. */
export class SearchTimes {
  /** Times in milliseconds, oldest first. */
  readonly #times = new LRUCache<string, Partial<Record<SearchMode, number[]>>>({ max: BASES_MAX })

  /** Runs a search, and keeps its time if it succeeds. The mode `hybrid_rerank` counts as `hybrid`. */
  async measure<T extends { readonly mode: string }>(base: BaseKey, search: () => Promise<T>): Promise<T> {
    const elapsedMs = stopwatch()
    const result = await search()
    const mode = modes.find(each => result.mode.startsWith(each))
    if (mode) this.add(base, mode, elapsedMs())
    return result
  }

  add(base: BaseKey, mode: SearchMode, elapsedMs: number): void {
    const key = baseKeyText(base)
    const byMode = this.#times.get(key) ?? {}
    const times = byMode[mode] ?? []
    times.push(elapsedMs)
    if (times.length > limits.searchesMeasured) times.shift()
    byMode[mode] = times
    this.#times.set(key, byMode)
  }

  /** Returns the number of times and their percentiles, for each mode with at least one search. */
  summarize(base: BaseKey): KnowledgeBaseStats['searches'] {
    const byMode = this.#times.get(baseKeyText(base)) ?? {}
    return modes.flatMap(mode => {
      const sorted = byMode[mode]?.toSorted((a, b) => a - b)
      if (!sorted) return []
      return { mode, count: sorted.length, p50Ms: percentile(sorted, 0.5), p95Ms: percentile(sorted, 0.95) }
    })
  }
}
