import { isZeroVector } from '../../base/unit-vector.ts'
import { queryWords } from '../../base/words.ts'
import { WbError } from '../../contract/errors.ts'
import type { ScoredRecord, SearchConstraints } from '../../storage/content.ts'
import { requireLexical } from '../../storage/store-features.ts'
import { statisticsFor } from '../../storage/visibility.ts'
import type { BaseContext } from '../knowledge-bases.ts'
import type { EmbeddedQuery } from '../passage-operations.ts'
import type { OrderedRanking } from './explanation.ts'
import {
  type FeedbackPassage,
  feedbackPassagesMax,
  feedbackQuery,
  fuseLists,
  type RankedLists,
  rerank,
  rerankByScores,
} from './fusion.ts'
import { indexesWords, type RankingMode, type SearchPlan } from './plan.ts'
import type { SentenceRanking } from './sentence-search.ts'
import type { ServiceScores } from './service-reranking.ts'
import { coverageByRecord, knownShare } from './word-weights.ts'

/** Default weight of lexical scores. */
const lexicalWeightDefault = 0.5
/**
 * Default weight of lexical scores in a placeholder space, whose vectors represent only the spelling of words. Lower
 * values had worse results in benchmarks.
 */
const lexicalWeightOfPlaceholder = 0.8
/**
 * Minimum share of the candidates of the other lists that must have a sentence vector. With fewer, most of them would be
 * missing from the list of the sentence model.
 */
const filledShareMin = 0.5
/** Number of best passages by words in which the words of the question are looked up. */
const coveragePassagesMax = 10
/** Weight of the lexical ranks in reranking, by mode. Higher values reduce the quality of hybrid search. */
const lexicalRankWeight = { vector: 0.2, hybrid: 0.02, lexical: 0 }

/** Candidates of a knowledge base, before their lists are fused and reranked. */
export interface BaseRanking {
  readonly context: BaseContext
  /** Mode of the lists. */
  readonly mode: RankingMode
  /** Usually contains more candidates than requested, because scores are scaled over all of them. */
  readonly lists: RankedLists
  /** Input of {@link rerank} for the first `topK` candidates; undefined if reranking was not requested. */
  readonly reranking: { readonly topK: number; readonly lexical: readonly ScoredRecord[] } | undefined
  /** Scores of the reranking service; undefined if it was not used, or if it failed. */
  readonly serviceScores: ServiceScores | undefined
  /** Request fields that had no effect. */
  readonly ignored: readonly string[]
  /** The request. The hits are read with its constraints. */
  readonly plan: SearchPlan
}

/**
 * Returns true if enough of the candidates have a sentence vector. Decides by rows that the caller can see, because a count
 * of all rows would reveal how many are hidden.
 */
export function isFilled({ vectorsThrough }: SentenceRanking, { vector, lexical }: RankedLists): boolean {
  const candidates = new Set([...vector, ...lexical].map(({ record }) => record))
  const filled = [...candidates].filter(record => record <= vectorsThrough)
  return filled.length >= candidates.size * filledShareMin
}

/** Ranks records by vectors and by words. */
export async function rankHybrid(
  context: BaseContext,
  plan: SearchPlan,
  query: EmbeddedQuery,
): Promise<RankedLists> {
  const { poolSize } = plan
  if (hasNoSimilarity(context, query))
    return {
      vector: [],
      lexical: await rankByWords(context, plan),
      lexicalWeight: 1,
      poolSize,
      weighting: {
        lexicalWeight: plan.lexicalWeight ?? lexicalWeightDefault,
        requested: plan.lexicalWeight !== undefined,
        knownShare: 0,
        coverage: null,
      },
    }
  const [vector, lexical, representedShare] = await Promise.all([
    rankByVector(context, plan, query),
    rankByWords(context, plan),
    computeRepresentedShare(context, plan, query),
  ])
  // A space that the runtime fits is the placeholder until its first fit, which creates generation 1.
  const isPlaceholder = context.isFittedByRuntime && query.generation === 0
  const requestedWeight =
    plan.lexicalWeight ?? (isPlaceholder ? lexicalWeightOfPlaceholder : lexicalWeightDefault)
  const lists = {
    vector,
    lexical,
    lexicalWeight: 1 - (1 - requestedWeight) * representedShare,
    poolSize,
    query,
    weighting: {
      lexicalWeight: requestedWeight,
      requested: plan.lexicalWeight !== undefined,
      knownShare: representedShare,
      coverage: null,
    },
  }
  return context.isFittedByRuntime && !isPlaceholder ? withFeedback(context, plan, query, lists) : lists
}

export function rankByVector(
  context: BaseContext,
  plan: SearchPlan,
  { vector, generation }: EmbeddedQuery,
): Promise<ScoredRecord[]> {
  return context.store.nearest(context.key, { vector, generation, limit: plan.poolSize, ...plan.constraints })
}

/** Keeps only records of the lexical list. If the query has phrases, these are the records known to contain them. */
export function keepLexicalRecords(lists: RankedLists): RankedLists {
  const lexicalRecords = new Set(lists.lexical.map(({ record }) => record))
  const keep = (list: readonly ScoredRecord[]) => list.filter(({ record }) => lexicalRecords.has(record))
  const { vector, sentences } = lists
  return {
    ...lists,
    vector: keep(vector),
    sentences: sentences && { ...sentences, list: keep(sentences.list) },
  }
}

/** Returns true if the query has similarity 0 with every record, so that vectors cannot rank the records. */
function hasNoSimilarity({ collection }: BaseContext, { vector }: EmbeddedQuery): boolean {
  return collection.metric !== 'euclidean' && isZeroVector(vector)
}

/** Returns the share of a question's words that its vector represents, 0 to 1. */
async function computeRepresentedShare(
  context: BaseContext,
  plan: SearchPlan,
  query: EmbeddedQuery,
): Promise<number> {
  const unknown = new Set(query.unknownWords)
  return unknown.size === 0
    ? 1
    : knownShare(unknown, await countOccurrences(context, plan.text!, [], plan.constraints))
}

/** Returns the highest share of the question's words in one of the best passages by words, 0 to 1. */
export async function bestCoverage(
  context: BaseContext,
  plan: SearchPlan,
  { lexical }: RankedLists,
): Promise<number> {
  const best = lexical.slice(0, coveragePassagesMax).map(({ record }) => record)
  if (best.length === 0) return 0
  return Math.max(
    0,
    ...coverageByRecord(await countOccurrences(context, plan.text!, best, plan.constraints)).values(),
  )
}

/** Applies pseudo-relevance feedback. Uses only records that the caller may see. */
async function withFeedback(
  context: BaseContext,
  plan: SearchPlan,
  query: EmbeddedQuery,
  lists: RankedLists,
): Promise<RankedLists> {
  const similar = new Set(lists.vector.filter(({ score }) => score > 0).map(({ record }) => record))
  const best = fuseLists(lists)
    .filter(({ record, score }) => score > 0 && similar.has(record))
    .slice(0, feedbackPassagesMax)
  if (best.length === 0) return lists
  const moved = {
    ...query,
    vector: feedbackQuery(query.vector, await feedbackOf(context, plan, best)),
  }
  return { ...lists, vector: await rankByVector(context, plan, moved), query: moved }
}

async function feedbackOf(
  context: BaseContext,
  plan: SearchPlan,
  best: readonly ScoredRecord[],
): Promise<FeedbackPassage[]> {
  const { visibility } = plan.constraints
  const weights = new Map(best.map(({ record, score }) => [record, score]))
  const views = await context.store.read(context.key, [...weights.keys()], { vectors: true, visibility })
  return views.map(({ record, vector }) => ({ vector: vector!, weight: weights.get(record)! }))
}

/** Returns the candidates of a ranking, best first, before reranking: fuses the lists of a hybrid search. */
export function fuseCandidates({ mode, lists }: BaseRanking): readonly ScoredRecord[] {
  return mode === 'hybrid' ? fuseLists(lists) : lists[mode]
}

/** Returns all candidates of a ranking, best first, after the requested reranking. */
export function applyReranking<S extends ScoredRecord>(
  { mode, reranking, serviceScores }: BaseRanking,
  candidates: readonly S[],
): readonly S[] {
  if (serviceScores) return rerankByScores(candidates, serviceScores.byRecord)
  if (!reranking) return candidates
  const { topK, lexical } = reranking
  return [...rerank(candidates.slice(0, topK), lexical, lexicalRankWeight[mode]), ...candidates.slice(topK)]
}

/** Orders the candidates of a ranking before and after reranking. */
export function orderCandidates(ranking: BaseRanking): OrderedRanking<BaseRanking> {
  const fused = fuseCandidates(ranking)
  return { ranking, fused, ordered: applyReranking(ranking, fused) }
}

/**
 * Returns the mode that a search used: `vector`, `lexical` or `hybrid`, with the suffix `_rerank` if the hits were
 * reranked. A hybrid search that could not use its vector counts as `lexical`.
 */
export function modeUsed({ mode, lists, reranking, serviceScores }: BaseRanking): string {
  const isByWords = lists.lexicalWeight === 1 && !lists.sentences
  const used = mode === 'hybrid' && isByWords ? 'lexical' : mode
  return serviceScores || (reranking && lexicalRankWeight[mode] > 0) ? `${used}_rerank` : used
}

/** A knowledge base that was searched, and what the search computed about its best candidates. */
export interface SearchedBase {
  readonly base: BaseContext['base']
  /** See {@link modeUsed}. */
  readonly mode: string
  /** See {@link bestCoverage}; null if it was not computed. */
  readonly coverage: number | null
  /** Highest similarity by the sentence model; null if it ranked no candidate. */
  readonly similarity: number | null
}

export function describeSearch(ranking: BaseRanking): SearchedBase {
  const { context, lists } = ranking
  return {
    base: context.base,
    mode: modeUsed(ranking),
    coverage: lists.weighting?.coverage ?? null,
    similarity: lists.sentences?.list[0]?.score ?? null,
  }
}

export function rankByWords(context: BaseContext, plan: SearchPlan): Promise<ScoredRecord[]> {
  return requireLexical(context.store, context.collection).search(context.key, {
    text: plan.text!,
    limit: plan.poolSize,
    statistics: statisticsFor(plan.constraints.visibility),
    isTyping: plan.isTyping,
    ...plan.constraints,
  })
}

/**
 * Counts the records that contain the words of a text. Counts all records that the caller may see, even those that do
 * not match the filter of the search.
 *
 * @param among  record numbers; the result lists which of these records contain each word
 */
export function countOccurrences(
  { store, collection, key }: BaseContext,
  text: string,
  among: readonly number[],
  { visibility }: Pick<SearchConstraints, 'visibility'>,
) {
  return requireLexical(store, collection).countOccurrences(key, {
    words: queryWords(text),
    among,
    visibility,
  })
}

/** @throws rerank_not_supported */
export async function rerankingFor(context: BaseContext, plan: SearchPlan, { lexical }: RankedLists) {
  const { topK, mode } = plan
  if (mode !== 'vector') return { topK, lexical }
  if (!indexesWords(context))
    throw new WbError(
      'rerank_not_supported',
      'reranking uses lexical search, which this knowledge base does not support',
    )
  return { topK, lexical: await rankByWords(context, plan) }
}
