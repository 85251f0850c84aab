import type { Caller } from '../access/caller.ts'
import { hasPhrase } from '../base/analysis/query.ts'
import { isZeroVector } from '../base/unit-vector.ts'
import { queryWords } from '../base/words.ts'
import { WbError } from '../contract/errors.ts'
import type { SearchHit, SearchRequest } from '../contract/knowledge.ts'
import type { RecordView, ScoredRecord, SearchConstraints } from '../storage/content.ts'
import { type Filter, joinFilters, parseFilter } from '../storage/filter.ts'
import { requireLexical } from '../storage/store-features.ts'
import { statisticsFor, type Visibility } from '../storage/visibility.ts'
import { explainRecords, type OrderedRanking } from './explanation.ts'
import {
  type FeedbackPassage,
  feedbackPassagesMax,
  feedbackQuery,
  fuseLists,
  type RankedLists,
  rerank,
  rerankByScores,
  sentenceWeight,
} from './fusion.ts'
import { rejectRawVector, requireFieldDimension } from './guards.ts'
import type { BaseContext } from './knowledge-bases.ts'
import type { KnowledgeFilters } from './knowledge-filters.ts'
import type { EmbeddedQuery } from './passage-operations.ts'
import { toApiPayload } from './payload.ts'
import type { SearchQueue } from './search-queue.ts'
import type { SentenceRanking, SentenceSearch } from './sentence-search.ts'
import type { ServiceReranking } from './service-reranking.ts'
import { retryOnSpaceChange, type VectorSpace } from './vector-space.ts'
import { coverageByRecord, knownShare } from './word-weights.ts'

/** Minimum number of candidates to request for a ranking whose scores are scaled over them. */
const poolSizeMin = 100

export interface SearchResult {
  readonly hits: SearchHit[]
  /** The mode that was used. See {@link modeUsed}. */
  readonly mode: string
  /** Request fields that had no effect. */
  readonly ignored: string[]
}

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

/** How records are ranked: by vectors, by words, or by both. */
type RankingMode = 'vector' | 'lexical' | 'hybrid'

/** A search request, with the defaults of the knowledge base applied. */
interface SearchPlan {
  readonly mode: RankingMode
  readonly text: string | undefined
  readonly vector: Float32Array | undefined
  readonly topK: number
  readonly poolSize: number
  /** True to explain the hits. */
  readonly explains: boolean
  /** Undefined for the default, which depends on the vector space. */
  readonly lexicalWeight: number | undefined
  /** Reorders the candidates: by their ranks by words, or by the service of the knowledge base. */
  readonly reranker: 'words' | 'service' | undefined
  /** Value of the API field `prefix`. */
  readonly isTyping: boolean
  readonly showVectors: boolean
  readonly showCoverage: boolean
  readonly constraints: SearchConstraints
  readonly ignored: string[]
}

/** Candidates of a knowledge base, before their lists are fused and reranked. */
export interface BaseRanking {
  readonly context: BaseContext
  readonly mode: RankingMode
  /** Usually contains more candidates than requested, because scores are scaled over all of them. */
  readonly lists: RankedLists
  /** Input of {@link rerank} for the first `topK` candidates; undefined if reranking was not requested. */
  readonly reranking: { readonly topK: number; readonly lexical: readonly ScoredRecord[] } | undefined
  /** Scores of the reranking service by record number; undefined if it was not used, or if it failed. */
  readonly serviceScores: ReadonlyMap<number, number> | undefined
  readonly showVectors: boolean
  /** Text of the question, to compute the coverage of each hit; undefined if coverage was not requested. */
  readonly coverageText: string | undefined
  readonly visibility: SearchConstraints['visibility']
  readonly ignored: readonly string[]
  readonly plan: SearchPlan
}

/** The part of a caller that a search needs. */
export type SearchCaller = Pick<Caller, 'auth' | 'client' | 'reauthorize' | 'rowAccess' | 'signal'>

/** A checked search request. If a provider embeds its text, the vector is already there. */
export interface PreparedSearch {
  readonly context: BaseContext
  readonly plan: SearchPlan
  /** Undefined if the search needs no vector, or if the runtime itself embeds the text. */
  readonly query: EmbeddedQuery | undefined
  readonly signal: AbortSignal
}

type ListsByName = Readonly<Record<'vector' | 'lexical' | 'sentences', readonly ScoredRecord[]>>

/** A ranking that can be explained. */
export interface RankedSearch extends OrderedRanking<BaseRanking> {
  /** True if passages with a sentence vector are also ranked by the sentence model. */
  readonly usesSentences: boolean
  /** Ranks each list again with the same question, another limit, and an additional filter. */
  rankAgain(options: { limit: number; filter?: Filter }): Promise<ListsByName>
}

/** Finds passages in one knowledge base by vectors, by words, or by both. */
export class Searcher {
  constructor(
    private readonly space: Pick<VectorSpace, 'embedQuery'>,
    private readonly filters: Pick<KnowledgeFilters, 'getParsed'>,
    private readonly queue: SearchQueue,
    /** Undefined if the runtime has no sentence model. */
    private readonly sentences: Pick<SentenceSearch, 'rank'> | undefined,
    private readonly services: Pick<ServiceReranking, 'score'>,
  ) {}

  /**
   * Returns hits, best first. Hits with equal scores are ordered by lexical score, then from the oldest record to
   * the newest.
   *
   * @param openContext  called again if the search has to wait, because the knowledge base may have changed
   * @throws validation_error, dimension_mismatch, vector_collection_not_allowed, vector_collection_required
   * @throws knowledge_filter_not_found, knowledge_base_not_found
   * @throws unauthorized, forbidden  the search had to wait, and the caller has lost the right to search
   * @throws overloaded  too many searches of the caller are waiting
   * @throws hybrid_not_supported, rerank_not_supported  the knowledge base does not support lexical search
   * @throws embedding_unavailable, embedding_dimension_mismatch
   */
  async search(
    openContext: () => Promise<BaseContext>,
    body: SearchRequest,
    caller: SearchCaller,
  ): Promise<SearchResult> {
    const read = async (ranking: BaseRanking) => {
      const fused = fuseCandidates(ranking)
      const ordered = applyReranking(ranking, fused)
      const hits = await readExplainedHits({ ranking, fused, ordered }, ordered.slice(0, body.topK))
      return { hits: [...hits.values()], mode: modeUsed(ranking), ignored: [...ranking.ignored] }
    }
    const ranked = await this.runInTurn(openContext, body, caller, async prepared => {
      const ranking = await this.rankCandidates(prepared)
      return { prepared, ranking, result: isServiceNeeded(prepared) ? undefined : await read(ranking) }
    })
    if (ranked.result) return ranked.result
    const { prepared } = ranked
    const ranking = await this.scoreByService(prepared, ranked.ranking)
    await caller.reauthorize()
    const readAgain = (current: PreparedSearch) => read(withCurrentRights(ranking, current))
    return this.runInTurn(openContext, body, caller, readAgain, prepared.query)
  }

  /** Prepares a search, and runs it when it is the caller's turn. Prepares it again, with current rights, if it waited. */
  private async runInTurn<T>(
    openContext: () => Promise<BaseContext>,
    body: SearchRequest,
    caller: SearchCaller,
    run: (prepared: PreparedSearch) => Promise<T>,
    embedded?: EmbeddedQuery,
  ): Promise<T> {
    const prepared = await this.prepareAtLeast(0, await openContext(), body, caller, embedded)
    return this.queue.run(caller, prepared.context.base.workspaceId, async hasWaited => {
      if (!hasWaited) return run(prepared)
      await caller.reauthorize()
      return run(await this.prepareAtLeast(0, await openContext(), body, caller, prepared.query))
    })
  }

  /**
   * Prepares a search in several knowledge bases, which ranks at least `topK` candidates if that many match.
   *
   * @throws the codes of {@link search}
   */
  prepare(context: BaseContext, body: SearchRequest, caller: SearchCaller): Promise<PreparedSearch> {
    return this.prepareAtLeast(poolSizeMin, context, body, caller)
  }

  /**
   * Ranks candidates, and calls `work` with them when it is the caller's turn. Calls `work` again if the vector space changes
   * in the meantime.
   *
   * @throws the codes of {@link search}
   */
  async inspect<T>(
    openContext: () => Promise<BaseContext>,
    body: SearchRequest,
    caller: SearchCaller,
    work: (search: RankedSearch) => Promise<T>,
  ): Promise<T> {
    return this.runInTurn(openContext, body, caller, async prepared => {
      const run = async () => {
        const ranking = await this.rankCandidates(prepared)
        const fused = fuseCandidates(ranking)
        const ordered = applyReranking(ranking, fused)
        const rankAgain: RankedSearch['rankAgain'] = options => this.rankAgain(prepared, ranking, options)
        const usesSentences = this.usesSentences(prepared.context, prepared.plan)
        return { result: await work({ ranking, fused, ordered, usesSentences, rankAgain }) }
      }
      const { result } = await retryOnSpaceChange(() => run().catch(undefinedIfSpaceChanged))
      return result
    })
  }

  private usesSentences({ base, store }: BaseContext, { mode, isTyping }: SearchPlan): boolean {
    const isEnabled = this.sentences !== undefined && store.spaces !== undefined && base.semantic !== false
    return isEnabled && mode === 'hybrid' && !isTyping
  }

  /** Ranks each list of a ranking again, with another limit and filter. */
  private async rankAgain(
    { context, plan, signal }: PreparedSearch,
    { mode, lists }: BaseRanking,
    { limit, filter }: { limit: number; filter?: Filter },
  ): Promise<ListsByName> {
    const constraints = { ...plan.constraints, filter: joinFilters(plan.constraints.filter, filter) }
    const again = { ...plan, poolSize: limit, constraints }
    const [vector, lexical, sentences] = await Promise.all([
      lists.query ? rankByVector(context, again, lists.query) : [],
      mode === 'vector' ? [] : rankByWords(context, again),
      lists.sentences ? this.sentences?.rank(context, plan.text!, { limit, constraints }, signal) : undefined,
    ])
    return { vector, lexical, sentences: sentences?.list ?? [] }
  }

  /**
   * @param vectorPoolMin  minimum number of candidates if only vectors rank them
   * @param embedded       the query, if it is already embedded
   */
  private async prepareAtLeast(
    vectorPoolMin: number,
    context: BaseContext,
    body: SearchRequest,
    caller: SearchCaller,
    embedded?: EmbeddedQuery,
  ): Promise<PreparedSearch> {
    const { signal } = caller
    const [access, saved] = await Promise.all([
      caller.rowAccess(context.base.workspaceId),
      this.savedFilter(context, body),
    ])
    const visibility = access.visibility(context.base, { action: 'search' })
    const plan = createPlan(context, body, visibility, { saved, vectorPoolMin })
    // A provider can be slow, so its requests are not part of the work that waits in a queue.
    const isEmbeddedFirst = plan.mode !== 'lexical' && !context.isFittedByRuntime
    const query = embedded ?? (isEmbeddedFirst ? await this.embedQuery(context, plan, signal) : undefined)
    return { context, plan, query, signal }
  }

  /** Ranks candidates, but does not read their hits. Call it in the {@link SearchQueue}. */
  async rankCandidates(prepared: PreparedSearch): Promise<BaseRanking> {
    const { context, plan } = prepared
    const lists = await this.rankInCurrentSpace(prepared)
    return {
      context,
      mode: plan.mode,
      lists,
      reranking: plan.reranker === 'words' ? await rerankingFor(context, plan, lists) : undefined,
      serviceScores: undefined,
      showVectors: plan.showVectors,
      coverageText: plan.showCoverage ? plan.text : undefined,
      visibility: plan.constraints.visibility,
      ignored: plan.ignored,
      plan,
    }
  }

  /**
   * Lets the reranking service of a knowledge base score the best candidates, if the search needs it. If the service
   * fails, the ranking stays as it is, and names `rerank` as ignored. A service can be slow, so do not call this in the
   * {@link SearchQueue}.
   */
  async scoreByService(prepared: PreparedSearch, ranking: BaseRanking): Promise<BaseRanking> {
    const { context, plan, signal } = prepared
    if (!isServiceNeeded(prepared)) return ranking
    const { store, key } = context
    const { visibility } = plan.constraints
    const candidates = fuseCandidates(ranking).map(({ record }) => record)
    const serviceScores = await this.services.score(
      context,
      plan.text!,
      count => candidates.slice(0, count),
      records => store.read(key, records, { vectors: false, visibility }),
      signal,
    )
    return serviceScores
      ? { ...ranking, serviceScores }
      : { ...ranking, ignored: [...ranking.ignored, 'rerank'] }
  }

  private async savedFilter({ base }: BaseContext, { knowledgeFilterId }: SearchRequest) {
    return knowledgeFilterId === undefined
      ? undefined
      : this.filters.getParsed({ ...base, knowledgeFilterId })
  }

  /** Ranks records. Retries if the vector space changes after the query has been embedded. */
  private async rankInCurrentSpace(prepared: PreparedSearch): Promise<RankedLists> {
    return retryOnSpaceChange(() => this.rank(prepared).catch(undefinedIfSpaceChanged))
  }

  private async rank({ context, plan, query: embedded, signal }: PreparedSearch): Promise<RankedLists> {
    const { mode, poolSize } = plan
    if (mode === 'lexical')
      return { vector: [], lexical: await rankByWords(context, plan), lexicalWeight: 1, poolSize }
    const query = embedded ?? (await this.embedQuery(context, plan, signal))
    if (mode === 'vector')
      return {
        vector: await rankByVector(context, plan, query),
        lexical: [],
        lexicalWeight: 0,
        poolSize,
        query,
      }
    const lists = await this.addSentences(context, plan, rankHybrid(context, plan, query), signal)
    return hasPhrase(plan.text!) ? keepLexicalRecords(lists) : lists
  }

  private async embedQuery(
    context: BaseContext,
    plan: SearchPlan,
    signal: AbortSignal,
  ): Promise<EmbeddedQuery> {
    const { generation } = context.collection
    return plan.vector
      ? { vector: plan.vector, generation, unknownWords: [] }
      : this.space.embedQuery(context, plan.text!, signal)
  }

  /** Adds the ranking by the sentence model to a hybrid ranking. */
  private async addSentences(
    context: BaseContext,
    plan: SearchPlan,
    hybrid: Promise<RankedLists>,
    signal: AbortSignal,
  ): Promise<RankedLists> {
    // A word that is still being typed has no meaning yet.
    if (!this.sentences || plan.isTyping) return hybrid
    const { poolSize: limit, constraints } = plan
    const [lists, ranking] = await Promise.all([
      hybrid,
      this.sentences.rank(context, plan.text!, { limit, constraints }, signal),
    ])
    if (!ranking || !isFilled(ranking, lists)) return lists
    const { list } = ranking
    if (plan.lexicalWeight === undefined) {
      const coverage = await bestCoverage(context, plan, lists)
      const weighting = lists.weighting && { ...lists.weighting, coverage }
      return { ...lists, weighting, sentences: { list, weight: sentenceWeight(coverage) } }
    }
    // Words keep their weight, and the two vector rankings share the rest.
    const weight = (1 - plan.lexicalWeight) / 2
    const lexicalWeight = Math.min(1, lists.lexicalWeight / (1 - weight))
    return { ...lists, lexicalWeight, sentences: { list, weight } }
  }
}

/**
 * Returns true if enough of the candidates have a sentence vector. Decides by rows that the caller can see, because a count
 * of all rows would reveal how many are hidden.
 */
function isFilled({ vectorsThrough }: SentenceRanking, { vector, lexical }: RankedLists): boolean {
  const candidates = new Set([...vector, ...lexical].map(({ record }) => record))
  const filled = [...candidates].filter(record => record <= vectorsThrough)
  return filled.length >= candidates.size * filledShareMin
}

/** Ranks records by vectors and by words. */
async function rankHybrid(
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

function rankByVector(
  context: BaseContext,
  plan: SearchPlan,
  { vector, generation }: EmbeddedQuery,
): Promise<ScoredRecord[]> {
  return context.store.nearest(context.key, { vector, generation, limit: plan.poolSize, ...plan.constraints })
}

/** Keeps only records of the lexical list. If the query has phrases, these are the records known to contain them. */
function keepLexicalRecords(lists: RankedLists): RankedLists {
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
async function bestCoverage(
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

/** Returns a ranking with the rights of a search that was prepared later, with which its hits are read. */
export function withCurrentRights(ranking: BaseRanking, { context, plan }: PreparedSearch): BaseRanking {
  return { ...ranking, context, plan, visibility: plan.constraints.visibility }
}

/** Applies the requested reranking to the candidates of a ranking. */
export function applyReranking<S extends ScoredRecord>(
  { mode, reranking, serviceScores }: BaseRanking,
  candidates: readonly S[],
): readonly S[] {
  if (serviceScores) return rerankByScores(candidates, serviceScores)
  if (!reranking) return candidates
  return rerank(candidates.slice(0, reranking.topK), reranking.lexical, lexicalRankWeight[mode])
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

function undefinedIfSpaceChanged(error: unknown): undefined {
  if (!(error instanceof WbError) || error.facts.stale !== true) throw error
}

function createPlan(
  context: BaseContext,
  body: SearchRequest,
  visibility: Visibility,
  { saved, vectorPoolMin }: { saved: Filter | undefined; vectorPoolMin: number },
): SearchPlan {
  const { base, isFittedByRuntime, collection } = context
  const filter = joinFilters(parseFilter(body.filter), saved)
  if (body.hybrid && body.text === undefined) throw new WbError('validation_error', 'hybrid: requires text')
  if (body.rerank && body.text === undefined) throw new WbError('validation_error', 'rerank: requires text')
  if (body.vector) rejectRawVector('vector', context)
  if (body.vector) requireFieldDimension('vector', body.vector.length, collection.dimension)
  const hybrid = body.hybrid ?? (body.text !== undefined && base.lexical.enabled)
  const ignored: string[] = []
  const reranker = rerankerOf(context, body)
  if (body.rerank === undefined && base.rerankingServiceId && body.text !== undefined && !reranker)
    ignored.push('rerank')
  if (body.includeEmbeddings && isFittedByRuntime) ignored.push('includeEmbeddings')
  const hasCoverage = body.text !== undefined && indexesWords(context)
  if (body.includeCoverage && !hasCoverage) ignored.push('includeCoverage')
  // An outdated model still contains words of rows that the caller may no longer see.
  const isModelAllowed = !collection.isModelOutdated || !visibility.filter
  const mode = isModelAllowed ? rankingMode(hybrid, body.lexicalWeight) : 'lexical'
  return {
    mode,
    text: body.text,
    vector: body.vector,
    topK: body.topK,
    poolSize: Math.max(mode === 'vector' && !reranker ? vectorPoolMin : poolSizeMin, body.topK),
    lexicalWeight: body.lexicalWeight,
    explains: body.explain ?? false,
    reranker,
    isTyping: body.prefix ?? false,
    showVectors: body.includeEmbeddings && !isFittedByRuntime,
    showCoverage: body.includeCoverage === true && hasCoverage,
    constraints: { visibility, filter },
    ignored,
  }
}

/** Returns what reranks the results of a request. A service is not called for each letter that a user types. */
function rerankerOf(
  { base }: BaseContext,
  { text, rerank: requested, prefix }: SearchRequest,
): SearchPlan['reranker'] {
  if (text === undefined || requested === false) return undefined
  if (base.rerankingServiceId && (requested || !prefix)) return 'service'
  return requested ? 'words' : undefined
}

/** Returns true if the reranking service of the knowledge base is to score the candidates. */
export function isServiceNeeded({ plan }: PreparedSearch): boolean {
  return plan.reranker === 'service'
}

function indexesWords({ store, collection }: BaseContext): boolean {
  return store.lexical !== undefined && collection.lexical
}

function rankingMode(hybrid: boolean, lexicalWeight: number | undefined): RankingMode {
  if (!hybrid || lexicalWeight === 0) return 'vector'
  return lexicalWeight === 1 ? 'lexical' : 'hybrid'
}

function rankByWords(context: BaseContext, plan: SearchPlan): Promise<ScoredRecord[]> {
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
async function rerankingFor(context: BaseContext, plan: SearchPlan, { lexical }: RankedLists) {
  const { topK, mode } = plan
  if (mode !== 'vector') return { topK, lexical }
  if (!indexesWords(context))
    throw new WbError(
      'rerank_not_supported',
      'reranking uses lexical search, which this knowledge base does not support',
    )
  return { topK, lexical: await rankByWords(context, plan) }
}

/**
 * Reads the hits for candidates. Returns them by record number, in the given order. Omits records that no longer exist.
 */
async function readHits(
  { context, showVectors, coverageText, visibility }: BaseRanking,
  candidates: readonly ScoredRecord[],
): Promise<Map<number, SearchHit>> {
  const numbers = candidates.map(({ record }) => record)
  const [views, shares] = await Promise.all([
    context.store.read(context.key, numbers, { vectors: showVectors, visibility }),
    coverageText === undefined
      ? undefined
      : countOccurrences(context, coverageText, numbers, { visibility }).then(coverageByRecord),
  ])
  const byRecord = new Map(views.map(view => [view.record, view]))
  return new Map(
    candidates.flatMap(({ record, score }) => {
      const view = byRecord.get(record)
      return view ? [[record, toHit(view, score, shares && (shares.get(record) ?? 0))] as const] : []
    }),
  )
}

/** Like {@link readHits}, but also explains the hits if the request asks for it. */
export async function readExplainedHits(
  ordered: OrderedRanking<BaseRanking>,
  candidates: readonly ScoredRecord[],
): Promise<Map<number, SearchHit>> {
  const { ranking } = ordered
  const hits = await readHits(ranking, candidates)
  if (!ranking.plan.explains) return hits
  const explanations = await explainRecords(ordered, [...hits.keys()])
  return new Map(
    [...hits].map(([record, hit]) => [record, { ...hit, explanation: explanations.get(record)! }]),
  )
}

function toHit(view: RecordView, score: number, coverage: number | undefined): SearchHit {
  return {
    id: view.id,
    score,
    ...(coverage !== undefined && { coverage }),
    payload: toApiPayload(view),
    ...(view.vector && { vector: Array.from(view.vector) }),
  }
}
