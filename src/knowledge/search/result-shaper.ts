import pMap from 'p-map'
import type { Clock } from '../../base/clock.ts'
import type { RowStore } from '../../storage/rows.ts'
import { tables } from '../../storage/tables.ts'
import { applyBoosts } from './boosts.ts'
import { diversify } from './diversity.ts'
import { groupByDocument } from './grouping.ts'
import { joinNeighbors } from './neighbors.ts'
import { readCandidates } from './read-candidates.ts'
import { documentKeyText, type RankedCandidate, type ShapedCandidate } from './shaped-candidate.ts'
import { needsIngestTimes, type Shaping } from './shaping.ts'

const concurrentReadsMax = 8
/** Maximum number of candidates whose texts are in memory at the same time. */
export const shapedCandidatesMax = 10_000
/** Total length of the candidates, in characters of JSON, after which no others are read. */
const shapedCharsMax = 16_000_000

/** Changes the results of a search after ranking: by boosts, diversity, joined neighbors, and grouping, in this order. */
export class ResultShaper {
  constructor(
    private readonly parts: { readonly rows: Pick<RowStore, 'get'>; readonly clock: Pick<Clock, 'now'> },
  ) {}

  /**
   * Applies the stages to the candidates of a search. Omits candidates that no longer exist, and those beyond the first
   * {@link shapedCandidatesMax}, or beyond a total length.
   *
   * @param candidates  best first
   * @returns the results, and whether candidates were omitted because of the total length
   */
  async shape(
    candidates: readonly RankedCandidate[],
    shaping: Shaping,
  ): Promise<{ results: ShapedCandidate[]; isCut: boolean }> {
    const shaped = candidates.slice(0, shapedCandidatesMax)
    const { read: found, isCut } = await readCandidates(shaped, { vectors: false, charsMax: shapedCharsMax })
    const read = found.map(({ candidate, view }): ShapedCandidate => ({ ...candidate, view, changes: {} }))
    const ingestedAt = needsIngestTimes(shaping) ? await this.readIngestTimes(read) : undefined
    const boosted = applyBoosts(read, shaping.boosts, this.parts.clock.now(), candidate =>
      ingestedAt?.get(documentKeyText(candidate)),
    )
    const diversified = await diversify(boosted, shaping.diversity)
    const joined = joinNeighbors(diversified, shaping.neighbors)
    return { results: groupByDocument(joined, shaping.perGroup), isCut }
  }

  /** Returns the times at which the documents of candidates were ingested, by {@link documentKeyText}. */
  private async readIngestTimes(
    candidates: readonly ShapedCandidate[],
  ): Promise<ReadonlyMap<string | null, string>> {
    const byDocument = new Map(candidates.map(candidate => [documentKeyText(candidate), candidate]))
    const times = new Map<string | null, string>()
    await pMap(
      byDocument,
      async ([key, { view, source }]) => {
        const { documentId } = view
        if (documentId === null) return
        const { workspaceId, knowledgeBaseId } = source.ranking.context.base
        const document = await this.parts.rows.get(tables.documents, [
          workspaceId,
          knowledgeBaseId,
          documentId,
        ])
        if (document?.row.ingestedAt) times.set(key, document.row.ingestedAt)
      },
      { concurrency: concurrentReadsMax },
    )
    return times
  }
}
