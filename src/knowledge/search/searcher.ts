import pMap from 'p-map'
import type { Caller } from '../../access/caller.ts'
import type { CallerQueue } from '../../access/caller-queue.ts'
import { hasPhrase } from '../../base/analysis/query.ts'
import { groupBy } from '../../base/group-by.ts'
import { WbError } from '../../contract/errors.ts'
import type { SearchHit, SearchRequest } from '../../contract/knowledge.ts'
import type { ScoredRecord } from '../../storage/content.ts'
import { type Filter, joinFilters } from '../../storage/filter.ts'
import type { BaseContext } from '../knowledge-bases.ts'
import type { KnowledgeFilters } from '../knowledge-filters.ts'
import type { EmbeddedQuery } from '../passage-operations.ts'
import { retryOnSpaceChange, undefinedIfSpaceChanged, type VectorSpace } from '../vector-space.ts'
import { type OrderedRanking, scoreLexically } from './explanation.ts'
import { type RankedLists, sentenceWeight } from './fusion.ts'
import { readResults } from './hits.ts'
import { createPlan, poolSizeMin, type SearchPlan } from './plan.ts'
import {
  type BaseRanking,
  bestCoverage,
  describeSearch,
  fuseCandidates,
  isFilled,
  keepLexicalRecords,
  modeUsed,
  orderCandidates,
  rankByVector,
  rankByWords,
  rankHybrid,
  rerankingFor,
  type SearchedBase,
} from './ranking.ts'
import { type ResultShaper, shapedCandidatesMax } from './result-shaper.ts'
import { searchInTurns } from './search-in-turns.ts'
import type { SentenceSearch } from './sentence-search.ts'
import type { ServiceReranking } from './service-reranking.ts'
import type { RankedCandidate, ShapedCandidate } from './shaped-candidate.ts'
import type { Shaping } from './shaping.ts'

export interface SearchResult {
  readonly hits: SearchHit[]
  /** The mode that was used. See {@link modeUsed}. */
  readonly mode: string
  /** Request fields that had no effect, or not their whole effect: `topK` if the hits got too long for an answer. */
  readonly ignored: string[]
  /** The knowledge bases that were searched. */
  readonly searched: readonly SearchedBase[]
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
  /** Minimum number of candidates if only vectors rank them. */
  readonly vectorPoolMin: number
}

type ListsByName = Readonly<Record<'vector' | 'lexical' | 'sentences', readonly ScoredRecord[]>>

/** Rankings whose candidates were merged, and changed by the stages of the request. */
export interface ShapedRankings {
  readonly rankings: readonly BaseRanking[]
  /** Candidates of all rankings before the stages, best first. */
  readonly candidates: readonly RankedCandidate[]
  /** Candidates after the stages, best first. */
  readonly results: readonly (RankedCandidate | ShapedCandidate)[]
}

/** A ranking that can be explained. */
export interface RankedSearch extends OrderedRanking<BaseRanking> {
  /** All results, including those beyond the requested number. */
  readonly results: ShapedRankings['results']
  /** Returns the results with other stages. */
  reshape(shaping: Shaping): Promise<readonly ShapedCandidate[]>
  /** True if passages with a sentence vector are also ranked by the sentence model. */
  readonly usesSentences: boolean
  /** Ranks each list again with the same question, another limit, and an additional filter. */
  rankAgain(options: { limit: number; filter?: Filter }): Promise<ListsByName>
}

/** Maximum number of knowledge bases that are searched at the same time for a request. */
export const concurrentSearchesMax = 4
/** Maximum number of attempts to fill grouped results, and of records that each adds to a list. */
const shapingAttemptsMax = 10
const addedRecordsMax = 1_000

export interface SearcherParts {
  readonly space: Pick<VectorSpace, 'embedQuery'>
  readonly filters: Pick<KnowledgeFilters, 'getParsed'>
  readonly queue: CallerQueue
  /** Undefined if the runtime has no sentence model. */
  readonly sentences: Pick<SentenceSearch, 'rank'> | undefined
  readonly reranking: Pick<ServiceReranking, 'score'>
  readonly shaper: ResultShaper
  /** True if scores of several knowledge bases are scaled together. Then, lists without weight are needed too. */
  readonly comparesBases?: boolean
}

/** Finds passages in one knowledge base by vectors, by words, or by both. */
export class Searcher {
  constructor(private readonly parts: SearcherParts) {}

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
    return this.searchInTurns(openContext, body, caller, async (_, ranking) => {
      const { results } = await this.shapeResults([ranking], candidatesOf, caller.signal)
      const { hits, isCut } = await readResults(results.slice(0, body.topK))
      const searched = [describeSearch(ranking)]
      const ignored = isCut ? [...ranking.ignored, 'topK'] : [...ranking.ignored]
      return { hits: hits.map(({ hit }) => hit), mode: modeUsed(ranking), ignored, searched }
    })
  }

  /**
   * Searches one knowledge base in turns. `finish` gets the ranking, with the scores of a reranking service. Starts again if the
   * knowledge base changes to another embedding service in the meantime.
   */
  private async searchInTurns<T>(
    openContext: () => Promise<BaseContext>,
    body: SearchRequest,
    caller: SearchCaller,
    finish: (prepared: PreparedSearch, ranking: BaseRanking) => Promise<T>,
  ): Promise<T> {
    const { result } = await retryOnSpaceChange(async () => ({
      result: await this.searchOnce(openContext, body, caller, finish),
    }))
    return result
  }

  private async searchOnce<T>(
    openContext: () => Promise<BaseContext>,
    body: SearchRequest,
    caller: SearchCaller,
    finish: (prepared: PreparedSearch, ranking: BaseRanking) => Promise<T>,
  ): Promise<T> {
    const first = await this.prepareAtLeast(0, await openContext(), body, caller)
    // A provider can take seconds. A revocation in the meantime must take effect.
    if (first.query) await caller.reauthorize()
    return searchInTurns(this.parts.queue, caller, first.context.base.workspaceId, {
      prepare: async () => first,
      prepareAgain: async prepared => {
        await caller.reauthorize()
        return this.prepareAgain(prepared, await openContext(), body, caller)
      },
      rank: prepared => this.rankCandidates(prepared),
      isServiceNeeded,
      score: (prepared, ranking) => this.scoreByService(prepared, ranking),
      finish: (prepared, ranking) => finish(prepared, withCurrentRights(ranking, prepared)),
    })
  }

  /**
   * Merges the candidates of rankings, and applies the stages of the request to them. If grouping leaves fewer results than
   * requested, adds candidates of other documents to the rankings. Call it in the {@link CallerQueue}.
   */
  async shapeResults(
    rankings: readonly BaseRanking[],
    merge: (rankings: readonly BaseRanking[]) => Promise<readonly RankedCandidate[]>,
    signal: AbortSignal,
    attempt = 1,
  ): Promise<ShapedRankings> {
    const candidates = await merge(rankings)
    const { shaping, topK } = rankings[0]?.plan ?? {}
    if (!shaping || topK === undefined) return { rankings, candidates, results: candidates }
    const { results, isCut } = await this.parts.shaper.shape(candidates, shaping)
    const { perGroup } = shaping
    const isLast = isCut || attempt === shapingAttemptsMax || candidates.length >= shapedCandidatesMax
    if (perGroup === undefined || results.length >= topK || isLast) return { rankings, candidates, results }
    const add = (ranking: BaseRanking) =>
      this.addCandidates(ranking, fullDocuments(results, ranking, perGroup), signal).catch(
        undefinedIfSpaceChanged,
      )
    const extended = await pMap(rankings, add, { concurrency: concurrentSearchesMax })
    if (extended.every(ranking => ranking === undefined)) return { rankings, candidates, results }
    const next = rankings.map((ranking, index) => extended[index] ?? ranking)
    return this.shapeResults(next, merge, signal, attempt + 1)
  }

  /** Adds candidates of documents other than the given ones to a ranking. Returns undefined if there are none. */
  private async addCandidates(
    ranking: BaseRanking,
    documentIds: readonly string[],
    signal: AbortSignal,
  ): Promise<BaseRanking | undefined> {
    const { lists, plan } = ranking
    const listed = { kind: 'in', key: 'documentId', values: documentIds } as const
    const options = { limit: addedRecordsMax, filter: { kind: 'not', operand: listed } as const }
    const more = await this.rankAgain(ranking, options, signal)
    // The statistics of words, and therefore lexical scores, depend on the filter.
    const scores = await scoreLexically(
      ranking,
      more.lexical.map(({ record }) => record),
    )
    const lexical = Array.from(scores, ([record, score]) => ({ record, score }))
    const extended = {
      ...lists,
      vector: mergeLists(lists.vector, more.vector),
      lexical: mergeLists(lists.lexical, lexical),
      sentences: lists.sentences && {
        ...lists.sentences,
        list: mergeLists(lists.sentences.list, more.sentences),
      },
    }
    const merged = plan.text !== undefined && hasPhrase(plan.text) ? keepLexicalRecords(extended) : extended
    const sizeOf = ({ vector, lexical, sentences }: RankedLists) =>
      vector.length + lexical.length + (sentences?.list.length ?? 0)
    return sizeOf(merged) > sizeOf(lists) ? { ...ranking, lists: merged } : undefined
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
    return this.searchInTurns(openContext, body, caller, async (prepared, ranked) => {
      let ranking: BaseRanking | undefined = ranked
      const run = async () => {
        const { serviceScores } = ranked
        ranking ??= { ...(await this.rankCandidates(prepared)), serviceScores }
        const search = await this.toRankedSearch(ranking, caller.signal)
        ranking = undefined
        return { result: await work(search) }
      }
      const { result } = await retryOnSpaceChange(run)
      return result
    })
  }

  private async toRankedSearch(ranked: BaseRanking, signal: AbortSignal): Promise<RankedSearch> {
    const { rankings, candidates, results } = await this.shapeResults([ranked], candidatesOf, signal)
    const [ranking] = rankings as [BaseRanking]
    return {
      ...orderCandidates(ranking),
      results,
      reshape: async shaping => (await this.parts.shaper.shape(candidates, shaping)).results,
      usesSentences: this.usesSentences(ranking.context, ranking.plan) && !isDecidedByWords(ranking),
      rankAgain: options => this.rankAgain(ranking, options, signal),
    }
  }

  private usesSentences({ base, store }: BaseContext, { mode, isTyping }: SearchPlan): boolean {
    const isEnabled =
      this.parts.sentences !== undefined && store.spaces !== undefined && base.semantic !== false
    // A word that is still being typed has no meaning yet.
    return isEnabled && mode === 'hybrid' && !isTyping
  }

  /** Ranks each list of a ranking again, with another limit and filter. */
  private async rankAgain(
    { context, plan, mode, lists }: BaseRanking,
    { limit, filter }: { limit: number; filter?: Filter },
    signal: AbortSignal,
  ): Promise<ListsByName> {
    const constraints = { ...plan.constraints, filter: joinFilters(plan.constraints.filter, filter) }
    const again = { ...plan, poolSize: limit, constraints }
    const [vector, lexical, sentences] = await Promise.all([
      lists.query ? rankByVector(context, again, lists.query) : [],
      mode === 'vector' ? [] : rankByWords(context, again),
      lists.sentences
        ? this.parts.sentences?.rank(context, plan.text!, { limit, constraints }, signal)
        : undefined,
    ])
    return { vector, lexical, sentences: sentences?.list ?? [] }
  }

  /** @param vectorPoolMin  minimum number of candidates if only vectors rank them */
  private async prepareAtLeast(
    vectorPoolMin: number,
    context: BaseContext,
    body: SearchRequest,
    caller: SearchCaller,
  ): Promise<PreparedSearch> {
    const { signal } = caller
    const plan = await this.plan(vectorPoolMin, context, body, caller)
    // A provider can be slow, so its requests are not part of the work that waits in a queue.
    const query = needsProvider(context, plan) ? await this.embedQuery(context, plan, signal) : undefined
    return { context, plan, query, signal, vectorPoolMin }
  }

  /**
   * Prepares a search again with the current rights of the caller, but with the same vector: sends no request to a provider,
   * so it can be called in the {@link CallerQueue}.
   *
   * @throws collection_unavailable  the search now needs a vector that it did not need before
   */
  async prepareAgain(
    { query, signal, vectorPoolMin }: PreparedSearch,
    context: BaseContext,
    body: SearchRequest,
    caller: SearchCaller,
  ): Promise<PreparedSearch> {
    const plan = await this.plan(vectorPoolMin, context, body, caller)
    if (needsProvider(context, plan) && !query)
      throw new WbError('collection_unavailable', 'the knowledge base changed while the search was waiting')
    return { context, plan, query, signal, vectorPoolMin }
  }

  private async plan(
    vectorPoolMin: number,
    context: BaseContext,
    body: SearchRequest,
    caller: SearchCaller,
  ): Promise<SearchPlan> {
    const [access, saved] = await Promise.all([
      caller.rowAccess(context.base.workspaceId),
      this.savedFilter(context, body),
    ])
    const visibility = access.visibility(context.base, { action: 'search' })
    return createPlan(context, body, visibility, { saved, vectorPoolMin })
  }

  /** Ranks candidates, but does not read their hits. Call it in the {@link CallerQueue}. */
  async rankCandidates(prepared: PreparedSearch): Promise<BaseRanking> {
    const { context, plan } = prepared
    const lists = await this.rankInCurrentSpace(prepared)
    return {
      context,
      mode: plan.mode,
      lists,
      reranking: plan.reranker === 'words' ? await rerankingFor(context, plan, lists) : undefined,
      serviceScores: undefined,
      ignored: plan.ignored,
      plan,
    }
  }

  /**
   * Lets the reranking service of a knowledge base score the best candidates, if the search needs it. If the service
   * fails, the ranking stays as it is, and names `rerank` as ignored. A service can be slow, so do not call this in the
   * {@link CallerQueue}.
   */
  async scoreByService(prepared: PreparedSearch, ranking: BaseRanking): Promise<BaseRanking> {
    const { context, plan, signal } = prepared
    if (!isServiceNeeded(prepared)) return ranking
    const { store, key } = context
    const { visibility } = plan.constraints
    const candidates = fuseCandidates(ranking).map(({ record }) => record)
    const serviceScores = await this.parts.reranking.score(
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
      : this.parts.filters.getParsed({ ...base, knowledgeFilterId })
  }

  /** Ranks records. Retries if the vector space changes after the query has been embedded. */
  private async rankInCurrentSpace(prepared: PreparedSearch): Promise<RankedLists> {
    // Only a space that the runtime fits can change without another embedding service.
    return prepared.context.isFittedByRuntime
      ? retryOnSpaceChange(() => this.rank(prepared))
      : this.rank(prepared)
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
      : this.parts.space.embedQuery(context, plan.text!, signal)
  }

  /** Adds the ranking by the sentence model to a hybrid ranking. */
  private async addSentences(
    context: BaseContext,
    plan: SearchPlan,
    hybrid: Promise<RankedLists>,
    signal: AbortSignal,
  ): Promise<RankedLists> {
    if (!this.parts.sentences || !this.usesSentences(context, plan)) return hybrid
    const { poolSize: limit, constraints } = plan
    const ranking = this.parts.sentences.rank(context, plan.text!, { limit, constraints }, signal)
    // A failure matters only if the ranking is awaited below.
    ranking.catch(() => {})
    const lists = await hybrid
    if (plan.lexicalWeight === undefined) return this.weighByCoverage(context, plan, lists, ranking)
    const sentences = await ranking
    if (!sentences || !isFilled(sentences, lists)) return lists
    // Words keep their weight, and the two vector rankings share the rest.
    const weight = (1 - plan.lexicalWeight) / 2
    const lexicalWeight = Math.min(1, lists.lexicalWeight / (1 - weight))
    return { ...lists, lexicalWeight, sentences: { list: sentences.list, weight } }
  }

  /** Counts the coverage while the sentence model runs. If words decide alone, does not wait for the model. */
  private async weighByCoverage(
    context: BaseContext,
    plan: SearchPlan,
    lists: RankedLists,
    ranking: ReturnType<SentenceSearch['rank']>,
  ): Promise<RankedLists> {
    const coverage = await bestCoverage(context, plan, lists)
    const weight = sentenceWeight(coverage)
    const weighed = { ...lists, weighting: lists.weighting && { ...lists.weighting, coverage } }
    if (weight === 0 && !this.parts.comparesBases) return weighed
    const sentences = await ranking
    return sentences && isFilled(sentences, lists)
      ? { ...weighed, sentences: { list: sentences.list, weight } }
      : lists
  }
}

async function candidatesOf(rankings: readonly BaseRanking[]): Promise<RankedCandidate[]> {
  return rankings.flatMap(ranking => {
    const source = orderCandidates(ranking)
    return source.ordered.map(candidate => ({ ...candidate, source }))
  })
}

/** Returns the IDs of the documents of a ranking that have the maximum number of results. */
function fullDocuments(
  results: readonly ShapedCandidate[],
  ranking: BaseRanking,
  perGroup: number,
): string[] {
  const own = results.filter(({ source }) => source.ranking === ranking)
  const ids = own.flatMap(({ view }) => view.documentId ?? [])
  return [...groupBy(ids, id => id)].flatMap(([id, group]) => (group.length >= perGroup ? [id] : []))
}

/** Adds the records of the second list that are not in the first, and sorts by score. */
function mergeLists(first: readonly ScoredRecord[], second: readonly ScoredRecord[]): ScoredRecord[] {
  const known = new Set(first.map(({ record }) => record))
  return [...first, ...second.filter(({ record }) => !known.has(record))].sort((a, b) => b.score - a.score)
}

/** Returns a ranking with the rights of a search that was prepared later, with which its hits are read. */
export function withCurrentRights(ranking: BaseRanking, { context, plan }: PreparedSearch): BaseRanking {
  return { ...ranking, context, plan }
}

/** Returns true if the ranking does not use the sentence model, because a passage contains all words of the question. */
function isDecidedByWords({ lists: { weighting, sentences } }: BaseRanking): boolean {
  return !sentences && sentenceWeight(weighting?.coverage ?? 0) === 0
}

/** Returns true if the reranking service of the knowledge base is to score the candidates. */
export function isServiceNeeded({ plan }: PreparedSearch): boolean {
  return plan.reranker === 'service'
}

/** Returns true if a search needs a vector that the runtime cannot compute itself. */
function needsProvider({ isFittedByRuntime }: BaseContext, { mode }: SearchPlan): boolean {
  return mode !== 'lexical' && !isFittedByRuntime
}
