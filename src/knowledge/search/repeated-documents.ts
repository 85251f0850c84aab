import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import pMap from 'p-map'
import { findVisibleDocument } from '../../access/document-visibility.ts'
import { documentMatcher } from '../../access/policy/document-fields.ts'
import type { KnowledgeBaseHit } from '../../contract/knowledge.ts'
import { limits } from '../../contract/limits.ts'
import { isLastBatch } from '../../storage/cursor.ts'
import type { RowStore } from '../../storage/rows.ts'
import { tables } from '../../storage/tables.ts'
import type { ResultHit } from './hits.ts'
import type { BaseRanking } from './ranking.ts'
import { type ReadCandidate, readCandidates } from './read-candidates.ts'
import type { RankedCandidate } from './shaped-candidate.ts'

/** Maximum number of hits for whose documents other knowledge bases are searched. */
const hitsMax = 100
/** Size of a read of documents with the same text. */
const batchSize = { limit: 100, charsMax: 1_000_000 }
const concurrentReadsMax = 8

/** Documents in other knowledge bases with the text of the document of a hit. */
type AlsoIn = NonNullable<KnowledgeBaseHit['alsoIn']>

/** Finds documents with the same text in several knowledge bases, so that a search does not repeat their passages. */
export class RepeatedDocuments {
  constructor(private readonly rows: RowStore) {}

  /**
   * Returns the first `limit` results, without passages of a document that an earlier result already has from another
   * knowledge base. Two documents are the same if their texts have the same content hash.
   *
   * @param results  best first
   * @returns the results, and whether others were not considered, because the texts are too long
   */
  async removeRepeated<Candidate extends RankedCandidate>(
    results: readonly Candidate[],
    limit: number,
  ): Promise<{ results: Candidate[]; isCut: boolean }> {
    const selected: Candidate[] = []
    const seen = new Map<string, ReadCandidate<Candidate>[]>()
    for (let start = 0; start < results.length && selected.length < limit; start += limit) {
      const slice = results.slice(start, start + limit)
      const { read, isCut } = await readCandidates(slice, { vectors: false, charsMax: limits.answerChars })
      for (const one of read) {
        const { text } = one.view
        const earlier = text === null ? [] : (seen.get(text) ?? [])
        if (await this.isRepeated(one, earlier)) continue
        if (text !== null) seen.set(text, [...earlier, one])
        selected.push(one.candidate)
      }
      if (isCut) return { results: selected.slice(0, limit), isCut }
    }
    return { results: selected.slice(0, limit), isCut: false }
  }

  private async isRepeated<Candidate extends RankedCandidate>(
    one: ReadCandidate<Candidate>,
    earlier: readonly ReadCandidate<Candidate>[],
  ): Promise<boolean> {
    const others = earlier.filter(({ candidate }) => candidate.source !== one.candidate.source)
    if (others.length === 0) return false
    const hashes = await Promise.all(
      [one, ...others].map(({ candidate, view }) =>
        view.documentId === null ? null : this.hashOf(candidate.source.ranking, view.documentId),
      ),
    )
    const [hash, ...hashesOfOthers] = hashes
    return hash !== null && hashesOfOthers.includes(hash!)
  }

  /** Returns the content hash of a document of a knowledge base; null if it has none, or the caller may not see it. */
  private async hashOf({ context: { base }, plan }: BaseRanking, documentId: string): Promise<string | null> {
    const key = { workspaceId: base.workspaceId, knowledgeBaseId: base.knowledgeBaseId, documentId }
    const stored = await findVisibleDocument(this.rows, key, plan.constraints.visibility)
    return stored?.row.contentHash ?? null
  }

  /**
   * Adds to hits of several knowledge bases the documents of the other ones that have the same text, and that the caller may
   * see. Considers the documents of the first {@link hitsMax} hits.
   *
   * @param rankings  of all searched knowledge bases
   */
  async addOtherBases(
    hits: readonly ResultHit[],
    rankings: readonly BaseRanking[],
  ): Promise<KnowledgeBaseHit[]> {
    const found = new Map<string, Promise<AlsoIn>>()
    const findOnce = (ranking: BaseRanking, documentId: string) => {
      const key = JSON.stringify([ranking.context.base.knowledgeBaseId, documentId])
      const alsoIn = found.get(key) ?? this.findInOthers(ranking, documentId, rankings)
      found.set(key, alsoIn)
      return alsoIn
    }
    return pMap(
      hits,
      async ({ hit, source: { ranking } }, at) => {
        const { knowledgeBaseId } = ranking.context.base
        const documentId = hit.payload?.documentId
        const isConsidered = at < hitsMax && typeof documentId === 'string'
        const alsoIn = isConsidered ? await findOnce(ranking, documentId) : []
        return { ...hit, knowledgeBaseId, ...(alsoIn.length > 0 && { alsoIn: [...alsoIn] }) }
      },
      { concurrency: concurrentReadsMax },
    )
  }

  private async findInOthers(
    ranking: BaseRanking,
    documentId: string,
    rankings: readonly BaseRanking[],
  ): Promise<AlsoIn> {
    const others = rankings.filter(other => other.context.key.name !== ranking.context.key.name)
    if (others.length === 0) return []
    const contentHash = await this.hashOf(ranking, documentId)
    if (contentHash === null) return []
    // Most texts are unique, and then no other document is read.
    const { workspaceId } = ranking.context.base
    const count = await this.rows.count(tables.documents, 'byContentHash', [workspaceId, contentHash])
    if (count < 2) return []
    const found = await Promise.all(others.map(other => this.findWithHash(contentHash, other)))
    return found.filter(document => document !== undefined)
  }

  /** Returns the oldest document with a text that the caller may see. Reads past any number of hidden ones. */
  private async findWithHash(
    contentHash: string,
    { context: { base }, plan }: BaseRanking,
  ): Promise<AlsoIn[number] | undefined> {
    const { workspaceId, knowledgeBaseId } = base
    const isVisible = documentMatcher(plan.constraints.visibility)
    const prefix = [workspaceId, contentHash, knowledgeBaseId]
    const list = { index: 'byContentHash', prefix, ...batchSize }
    let after: [number] | undefined
    for (;;) {
      const page = await this.rows.list(tables.documents, { ...list, ...(after && { after }) })
      const match = page.find(({ row }) => row.status === 'ready' && isVisible(row))
      if (match) return { knowledgeBaseId, documentId: match.row.documentId }
      if (isLastBatch(page, batchSize)) return undefined
      after = [page.at(-1)!.ordinal]
      await yieldToEventLoop()
    }
  }
}
