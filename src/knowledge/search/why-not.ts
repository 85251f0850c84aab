import { decideAccess } from '../../access/authorize.ts'
import type { Caller } from '../../access/caller.ts'
import { hasPhrase } from '../../base/analysis/query.ts'
import { needs } from '../../contract/access.ts'
import { WbError } from '../../contract/errors.ts'
import type { SearchRequest } from '../../contract/knowledge.ts'
import { limits } from '../../contract/limits.ts'
import type { Remedy, WhyNot } from '../../contract/search-explanation.ts'
import type { ScoredRecord } from '../../storage/content.ts'
import { parseFilter } from '../../storage/filter.ts'
import { requireListing } from '../../storage/store-features.ts'
import type { DocumentKey } from '../document-key.ts'
import type { Documents } from '../documents.ts'
import type { KnowledgeBases } from '../knowledge-bases.ts'
import { explainRecords, scoreLexically } from './explanation.ts'
import { poolSizeMin } from './plan.ts'
import type { BaseRanking } from './ranking.ts'
import type { RankedSearch, Searcher } from './searcher.ts'
import { createShaping, noShaping, type Shaping } from './shaping.ts'

/** Number of passages of a document that are considered: the first ones, and the best ones of each list. */
const firstPassagesMax = 1_000
const bestPassagesMax = 100
/** Number of results, best first, that are listed besides the last one. */
const resultsListed = 3

type RankAnswer = Omit<WhyNot, 'documentId' | 'topK' | 'status'>

const noRank: Omit<RankAnswer, 'stage' | 'remedies'> = {
  errorMessage: null,
  rank: null,
  score: null,
  cutoffScore: null,
  rerank: null,
  passage: null,
  lists: [],
  words: [],
  beatenBy: [],
}

/** Finds the stage at which a document drops out of a search. */
export class WhyNotSearch {
  constructor(
    private readonly parts: {
      readonly bases: Pick<KnowledgeBases, 'openContext' | 'withDeletionCheck'>
      readonly documents: Pick<Documents, 'get' | 'exists'>
      readonly searcher: Searcher
    },
  ) {}

  /**
   * Explains why a document is not in the results of a search. A document that the caller may not see is not found, unless
   * the caller may manage access.
   *
   * @throws document_not_found, list_records_not_supported, and the codes of a search
   */
  async answer(key: DocumentKey, body: SearchRequest, caller: Caller): Promise<WhyNot> {
    const { bases, documents } = this.parts
    const { documentId } = key
    const { topK } = body
    // Invalid filters and boosts are reported even if there is no such document.
    parseFilter(body.filter)
    createShaping(body)
    try {
      const { status, errorMessage } = await documents.get(key, caller)
      const answer = await bases.withDeletionCheck(key, () => this.searchDeeper(key, body, caller))
      if (answer) return { documentId, topK, status, ...answer }
      const action = status === 'ready' || status === 'failed' ? 'ingestAgain' : 'wait'
      return { ...noRank, documentId, topK, stage: 'ingest', status, errorMessage, remedies: [{ action }] }
    } catch (error) {
      if (!(await this.mayKnow(key, error, caller))) throw error
      const remedies = [{ action: 'grantAccess' as const }]
      return { ...noRank, documentId, topK, stage: 'visibility', status: null, remedies }
    }
  }

  /** Returns true if a document was not found because it is hidden, and the caller may manage access. */
  private async mayKnow(key: DocumentKey, error: unknown, caller: Caller): Promise<boolean> {
    if (!(error instanceof WbError) || error.code !== 'document_not_found') return false
    const rule = needs('manage:access')
    const { allow } = decideAccess({ rule, workspaceId: key.workspaceId }, caller)
    return allow && this.parts.documents.exists(key)
  }

  /**
   * Searches again with more results if the document is not a candidate, or if a larger `topK` would add candidates. These can
   * change the ranks, so the larger `topK` is suggested only if its search finds the document.
   */
  private async searchDeeper(
    key: DocumentKey,
    body: SearchRequest,
    caller: Caller,
  ): Promise<RankAnswer | undefined> {
    const answer = await this.search(key, body, caller)
    if (!answer || answer.stage === 'found') return answer
    const isUncertain =
      answer.rank === null ? answer.stage === 'candidates' : answer.rank > poolSizeMin || body.neighbors
    if (!isUncertain) return answer
    const searchWith = (topK: number) => this.search(key, { ...body, topK }, caller)
    const deepest = await searchWith(limits.topKMax)
    const others = answer.remedies.filter(({ action }) => action !== 'raiseTopK')
    if (deepest?.stage !== 'found') return { ...answer, remedies: others }
    const rank = deepest.rank!
    const isEnough = rank > body.topK && (await searchWith(rank))?.stage === 'found'
    const topK = isEnough ? rank : limits.topKMax
    return { ...answer, remedies: [{ action: 'raiseTopK', topK }, ...others] }
  }

  /** Returns undefined if the document has no passages. */
  private search(key: DocumentKey, body: SearchRequest, caller: Caller): Promise<RankAnswer | undefined> {
    const { bases, documents, searcher } = this.parts
    const openContext = () => bases.openContext(key.workspaceId, key.knowledgeBaseId)
    return searcher.inspect(openContext, body, caller, async search => {
      // The rights of the caller can change while the search waits.
      const { documentId } = await documents.get(key, caller)
      const records = await listPassages(search, documentId)
      if (records.length > 0) return this.rank(search, documentId, records)
      if (!(await hasPassages(search, documentId))) return undefined
      return { ...noRank, stage: 'filter', remedies: [{ action: 'removeFilter' }] }
    })
  }

  private async rank(
    search: RankedSearch,
    documentId: string,
    records: readonly number[],
  ): Promise<RankAnswer> {
    const { ranking, results } = search
    const { context, plan } = ranking
    const { topK } = plan
    const known = new Set(records)
    const own = await this.rankPassages(search, documentId, records)
    const index = results.findIndex(({ record }) => known.has(record))
    const best = results[index]?.record ?? own.best
    const cause = index >= topK ? await findCause(search, known) : undefined
    const stage = cause?.stage ?? stageOf(ranking, index, best)
    const { visibility } = plan.constraints
    const [explanations, deep, [view]] = await Promise.all([
      explainRecords(search, [best]),
      search.rankAgain({ limit: limits.topKMax }),
      context.store.read(context.key, [best], { vectors: false, visibility }),
    ])
    const { lists, words, rerank } = explanations.get(best)!
    const missing = words.filter(({ score, passages }) => score === 0 && passages > 0)
    const remedies = remediesFor({
      stage,
      rank: index + 1,
      isGrouped: cause?.isGrouped ?? false,
      words: missing.map(({ word }) => word),
      needsVectors: search.usesSentences && !own.scores.sentences.has(best),
    })
    return {
      stage,
      errorMessage: null,
      rank: index < 0 ? null : index + 1,
      score: results[index]?.score ?? null,
      cutoffScore: results[topK - 1]?.score ?? null,
      rerank,
      passage: view ? { id: view.id, chunkIndex: view.chunkIndex } : null,
      lists: lists.map(list => {
        const place = deep[list.name].findIndex(({ record }) => record === best)
        return {
          ...list,
          rank: list.rank ?? (place < 0 ? null : place + 1),
          score: list.score ?? own.scores[list.name].get(best) ?? null,
          cutoffScore: deep[list.name][topK - 1]?.score ?? null,
        }
      }),
      words,
      beatenBy: stage === 'found' ? [] : await this.readBetterResults(ranking, results.slice(0, topK)),
      remedies: stage === 'found' ? [] : remedies,
    }
  }

  /**
   * Returns the scores of the passages of a document in each list, and the best passage: by the sentence model if it scored
   * one, else by vectors, else by words.
   */
  private async rankPassages(search: RankedSearch, documentId: string, records: readonly number[]) {
    const [again, lexical] = await Promise.all([
      search.rankAgain({ limit: records.length, filter: ofDocument(documentId) }),
      scoreLexically(search.ranking, records),
    ])
    const scores = { lexical, vector: scoresOf(again.vector), sentences: scoresOf(again.sentences) }
    const known = new Set(records)
    const bestOf = (scored: ReadonlyMap<number, number>) =>
      [...scored].filter(([record]) => known.has(record)).sort(([, a], [, b]) => b - a)[0]?.[0]
    const best = bestOf(scores.sentences) ?? bestOf(scores.vector) ?? bestOf(lexical) ?? records[0]!
    return { scores, best }
  }

  private async readBetterResults(
    { context, plan }: BaseRanking,
    results: readonly ScoredRecord[],
  ): Promise<WhyNot['beatenBy']> {
    const listed = results.flatMap(({ record, score }, index) =>
      index < resultsListed || index === results.length - 1 ? [{ record, score, rank: index + 1 }] : [],
    )
    const views = await context.store.read(
      context.key,
      listed.map(({ record }) => record),
      { vectors: false, visibility: plan.constraints.visibility },
    )
    return listed.flatMap(({ record, score, rank }) => {
      const view = views.find(other => other.record === record)
      return view ? [{ rank, id: view.id, documentId: view.documentId, score }] : []
    })
  }
}

/**
 * Returns the stage without which a document would be among the first `topK` results, and whether grouping would bring it
 * in. Call it for a document below them.
 */
async function findCause(
  { ranking, reshape }: RankedSearch,
  passages: ReadonlySet<number>,
): Promise<{ stage?: 'diversity' | 'boosts'; isGrouped: boolean }> {
  const { shaping, topK } = ranking.plan
  const current = shaping ?? noShaping
  const isFoundWith = async (changed: Shaping) =>
    (await reshape(changed)).slice(0, topK).some(({ record }) => passages.has(record))
  const isGrouped = current.perGroup === undefined && (await isFoundWith({ ...current, perGroup: 1 }))
  if (current.diversity > 0 && (await isFoundWith({ ...current, diversity: 0 })))
    return { stage: 'diversity', isGrouped }
  if (current.boosts.length > 0 && (await isFoundWith({ ...current, boosts: [] })))
    return { stage: 'boosts', isGrouped }
  return { isGrouped }
}

function stageOf(
  { mode, lists, plan }: BaseRanking,
  index: number,
  record: number,
): 'found' | 'phrase' | 'candidates' | 'topK' {
  if (index >= 0) return index < plan.topK ? 'found' : 'topK'
  const isLexical = lists.lexical.some(other => other.record === record)
  return mode !== 'vector' && !isLexical && hasPhrase(plan.text!) ? 'phrase' : 'candidates'
}

function remediesFor({
  stage,
  rank,
  isGrouped,
  words,
  needsVectors,
}: {
  stage: WhyNot['stage']
  rank: number
  /** True if the document is found with one result per document. */
  isGrouped: boolean
  words: string[]
  /** True if the passage has no sentence vector yet. */
  needsVectors: boolean
}): Remedy[] {
  return [
    ...(stage === 'diversity' ? [{ action: 'removeDiversity' as const }] : []),
    ...(stage === 'boosts' ? [{ action: 'removeBoosts' as const }] : []),
    ...(isBelowTopK(stage) ? [{ action: 'raiseTopK' as const, topK: rank }] : []),
    ...(isGrouped ? [{ action: 'group' as const }] : []),
    ...(stage === 'phrase' ? [{ action: 'removePhrase' as const }] : []),
    ...(words.length > 0 ? [{ action: 'useWords' as const, words }] : []),
    ...(needsVectors ? [{ action: 'waitForVectors' as const }] : []),
  ]
}

function isBelowTopK(stage: WhyNot['stage']): boolean {
  return stage === 'topK' || stage === 'diversity' || stage === 'boosts'
}

function scoresOf(list: readonly ScoredRecord[]): Map<number, number> {
  return new Map(list.map(({ record, score }) => [record, score]))
}

/**
 * Returns the numbers of the first passages of a document that match the filter of the search, and of its best ones in each
 * list.
 */
async function listPassages(search: RankedSearch, documentId: string): Promise<number[]> {
  const { context, plan } = search.ranking
  const query = { documentId, limit: firstPassagesMax, ...plan.constraints }
  const first = await requireListing(context.store).numbersByDocument(context.key, query)
  if (first.length < firstPassagesMax) return first
  const best = await search.rankAgain({ limit: bestPassagesMax, filter: ofDocument(documentId) })
  const others = Object.values(best).flatMap(list => list.map(({ record }) => record))
  return [...new Set([...first, ...others])]
}

/** Returns true if a document has passages, even if none matches the filter of the search. */
async function hasPassages({ ranking }: RankedSearch, documentId: string): Promise<boolean> {
  const { context, plan } = ranking
  const query = { documentId, limit: 1, visibility: plan.constraints.visibility, filter: undefined }
  const numbers = await requireListing(context.store).numbersByDocument(context.key, query)
  return numbers.length > 0
}

function ofDocument(documentId: string) {
  return { kind: 'in', key: 'documentId', values: [documentId] } as const
}
