import pMap from 'p-map'
import { terms } from '../../base/words.ts'
import { WbError } from '../../contract/errors.ts'
import type { SearchManyRequest } from '../../contract/knowledge.ts'
import { limits } from '../../contract/limits.ts'
import type { ScoredRecord } from '../../storage/content.ts'
import { undefinedIfDeleted } from '../guards.ts'
import type { BaseContext, KnowledgeBases } from '../knowledge-bases.ts'
import { titleOfPayload } from '../payload.ts'
import { isSpaceChange } from '../vector-space.ts'
import { fuseEach, type ScaledLists } from './fusion.ts'
import { readResults } from './hits.ts'
import {
  applyReranking,
  type BaseRanking,
  countOccurrences,
  describeSearch,
  modeUsed,
  orderCandidates,
} from './ranking.ts'
import type { RepeatedDocuments } from './repeated-documents.ts'
import { searchInTurns } from './search-in-turns.ts'
import {
  concurrentSearchesMax,
  isServiceNeeded,
  type PreparedSearch,
  type SearchCaller,
  Searcher,
  type SearcherParts,
  withCurrentRights,
} from './searcher.ts'
import type { SentenceSearch } from './sentence-search.ts'
import type { RankedCandidate } from './shaped-candidate.ts'
import { totalWeight } from './word-weights.ts'

/** Maximum number of attempts. A search is retried if a knowledge base is deleted, or gets other vectors, in the meantime. */
const attemptsMax = 8
/** Number of best passages that determine the weight of a knowledge base. */
const passagesPerWeight = 3
/**
 * Weight of a knowledge base whose best passages contain no word of the question. With all words, the weight is 1.
 */
const weightMin = 0.5

interface ManySearcherParts extends Omit<SearcherParts, 'comparesBases' | 'sentences'> {
  readonly bases: KnowledgeBases
  readonly sentences: SentenceSearch | undefined
  readonly repeated: RepeatedDocuments
}

/** The caller of a search in several knowledge bases. */
interface ManySearchCaller extends SearchCaller {
  /** True to skip requested knowledge bases that are deleted in the meantime. Otherwise, the search fails. */
  readonly skipsDeleted?: boolean
}

/** A search in a knowledge base, with its ranking. */
type RankedBase = PreparedSearch & { readonly ranking: BaseRanking }

/** A candidate of several rankings. */
interface MergedCandidate extends RankedCandidate {
  /** Orders candidates with equal scores; 0 if scores were not fused. */
  readonly lexical: number
}

/**
 * Finds passages in several knowledge bases. Each is ranked with its own word statistics. Then their scores are scaled
 * together.
 */
export class ManySearcher {
  constructor(private readonly parts: ManySearcherParts) {}

  /**
   * Returns the best hits of all knowledge bases, best first. Fails if a knowledge base cannot be searched. However, a
   * knowledge base that is deleted in the meantime is skipped if it was not requested by ID, or if `skipsDeleted` is
   * set.
   *
   * @throws the codes of a search in one knowledge base; the message contains the name of the knowledge base
   * @throws validation_error  there are too many knowledge bases
   * @throws unauthorized, forbidden  the search had to wait, and the caller has lost the right to search
   * @throws overloaded  too many searches of the caller are waiting
   */
  async search(workspaceId: string, body: SearchManyRequest, caller: ManySearchCaller) {
    const skipsDeleted = !body.knowledgeBaseIds || caller.skipsDeleted === true
    const onDeleted = skipsDeleted ? undefinedIfDeleted : rethrow
    const searcher = new Searcher({
      ...this.parts,
      space: embedOncePerService(this.parts.space),
      sentences: this.parts.sentences?.forOneQuestion(),
      comparesBases: true,
    })
    const { repeated } = this.parts
    let prepared: readonly PreparedSearch[] = []
    const prepare = async () => {
      const contexts = await this.openContexts(workspaceId, body, onDeleted)
      prepared = await this.forEachBase(
        contexts.map(context => ({ context })),
        onDeleted,
        ({ context }) => searcher.prepare(context, body, caller),
        caller.signal,
      )
      // A provider can take seconds. A revocation in the meantime must take effect.
      if (prepared.some(({ query }) => query)) await caller.reauthorize()
      return prepared
    }
    const prepareAgain = async (before: readonly PreparedSearch[]) => {
      await caller.reauthorize()
      prepared = await this.forEachBase(before, onDeleted, async one =>
        searcher.prepareAgain(
          one,
          await this.parts.bases.openContext(workspaceId, one.context.base.knowledgeBaseId),
          body,
          caller,
        ),
      )
      return prepared
    }
    const finish = async (current: readonly PreparedSearch[], ranked: readonly RankedBase[]) => {
      const before = allWithCurrentRights(ranked, current)
      const merge = (rankings: readonly BaseRanking[]) => mergeRankings(rankings, body.text)
      const { rankings, results } = await searcher.shapeResults(before, merge, caller.signal)
      const distinct = await repeated.removeRepeated(results, body.topK)
      const { hits, isCut } = await readResults(distinct.results)
      const isTopKIgnored = isCut || distinct.isCut
      const ignored = new Set([
        ...rankings.flatMap(ranking => ranking.ignored),
        ...(isTopKIgnored ? ['topK'] : []),
      ])
      const searched = rankings.map(describeSearch)
      return {
        hits: await repeated.addOtherBases(hits, rankings),
        mode: commonMode(rankings),
        ignored: [...ignored],
        searched,
      }
    }
    for (let attempt = 1; ; attempt++) {
      try {
        return await searchInTurns(this.parts.queue, caller, workspaceId, {
          prepare,
          prepareAgain,
          rank: searches =>
            this.forEachBase(searches, onDeleted, async one => ({
              ...one,
              ranking: await searcher.rankCandidates(one),
            })),
          isServiceNeeded: searches => searches.some(isServiceNeeded),
          score: (_, ranked) =>
            this.forEachBase(ranked, onDeleted, async one => ({
              ...one,
              ranking: await searcher.scoreByService(one, one.ranking),
            })),
          finish,
        })
      } catch (error) {
        // A knowledge base has changed to another embedding service.
        if (isSpaceChange(error) && attempt < attemptsMax) continue
        const notFound = await this.notFoundIfDeleted(prepared, error)
        if (notFound === undefined || !skipsDeleted || attempt === attemptsMax) throw notFound ?? error
      }
    }
  }

  private async openContexts(
    workspaceId: string,
    body: SearchManyRequest,
    onDeleted: (error: unknown) => undefined,
  ): Promise<BaseContext[]> {
    const ids = await this.requestedBases(workspaceId, body)
    if (body.knowledgeFilterId !== undefined && ids.length !== 1)
      throw new WbError(
        'validation_error',
        'knowledgeFilterId: a saved filter belongs to one knowledge base; send only the ID of that knowledge base in knowledgeBaseIds',
      )
    const { bases } = this.parts
    const contexts = await Promise.all(ids.map(id => bases.openContext(workspaceId, id).catch(onDeleted)))
    return contexts.filter(context => context !== undefined)
  }

  /** Calls `work` for each knowledge base. Omits those for which `onDeleted` returns. */
  private async forEachBase<I extends { readonly context: BaseContext }, T>(
    inputs: readonly I[],
    onDeleted: (error: unknown) => undefined,
    work: (input: I) => Promise<T>,
    signal?: AbortSignal,
  ): Promise<T[]> {
    const results = await pMap(
      inputs,
      input =>
        this.parts.bases
          .withDeletionCheck(input.context.base, () => work(input))
          .catch(error => rethrowFor(input.context, error))
          .catch(onDeleted),
      { concurrency: concurrentSearchesMax, signal },
    )
    return results.filter(result => result !== undefined)
  }

  /** Returns the "not found" error if the given error occurred because a searched knowledge base was deleted. */
  private async notFoundIfDeleted(searches: readonly PreparedSearch[], error: unknown): Promise<unknown> {
    for (const { context } of searches) {
      const notFound = await this.parts.bases.notFoundIfDeleted(context.base, error)
      if (notFound !== undefined) return notFound
    }
    return undefined
  }

  /** @throws workspace_not_found, validation_error */
  private async requestedBases(
    workspaceId: string,
    { knowledgeBaseIds }: SearchManyRequest,
  ): Promise<string[]> {
    if (knowledgeBaseIds) return [...new Set(knowledgeBaseIds)]
    const all = await this.parts.bases.list(workspaceId, { limit: limits.knowledgeBasesPerSearch })
    if (all.nextCursor !== null)
      throw new WbError(
        'validation_error',
        `knowledgeBaseIds: the workspace has more than ${limits.knowledgeBasesPerSearch} knowledge bases; send the IDs of the ones to search`,
      )
    return all.items.filter(base => !base.importing).map(base => base.knowledgeBaseId)
  }
}

/** Applies {@link withCurrentRights} to each ranking. Omits those of deleted knowledge bases. */
function allWithCurrentRights(
  ranked: readonly RankedBase[],
  prepared: readonly PreparedSearch[],
): BaseRanking[] {
  const byBase = new Map(prepared.map(one => [one.context.base.knowledgeBaseId, one]))
  return ranked.flatMap(({ ranking }) => {
    const current = byBase.get(ranking.context.base.knowledgeBaseId)
    return current ? [withCurrentRights(ranking, current)] : []
  })
}

/** Returns the common mode of all rankings; `mixed` if their modes differ, and `none` if there are no rankings. */
function commonMode(rankings: readonly BaseRanking[]): string {
  const [mode = 'none', ...others] = new Set(rankings.map(modeUsed))
  return others.length > 0 ? 'mixed' : mode
}

/** Wraps a vector space so that it embeds the question only once for each embedding service. */
function embedOncePerService(space: SearcherParts['space']): SearcherParts['space'] {
  const vectors = new Map<string, ReturnType<SearcherParts['space']['embedQuery']>>()
  return {
    embedQuery(context, ...args) {
      if (context.isFittedByRuntime) return space.embedQuery(context, ...args)
      const { embeddingServiceId } = context.embedding
      const vector = vectors.get(embeddingServiceId) ?? space.embedQuery(context, ...args)
      vectors.set(embeddingServiceId, vector)
      return vector
    },
  }
}

/**
 * Merges the candidates of all rankings, best first, with comparable scores.
 *
 * Each knowledge base is ranked as if it were searched alone, but scores are scaled over all rankings, and lexical
 * scores are divided by the total weight of the question's words in the knowledge base. If the question has text, scores
 * are then weighted by the share of its terms that the best passages of the knowledge base contain. Without this weight,
 * passages of an unrelated knowledge base could score high, because words of the question are rare in it. Candidates
 * with equal scores are ordered by lexical score, then by the order of their knowledge bases.
 *
 * @see Callan, Lu, Croft, "Searching distributed collections with inference networks", 1995, section 5
 */
async function mergeRankings(
  rankings: readonly BaseRanking[],
  text: string | undefined,
): Promise<MergedCandidate[]> {
  const candidates = areComparable(rankings)
    ? rankings.map(ranking => {
        const source = orderCandidates(ranking)
        return source.ordered.map(record => ({ ...record, lexical: 0, source }))
      })
    : await scaleScores(rankings, text)
  return candidates.flat().sort((a, b) => b.score - a.score || b.lexical - a.lexical)
}

/**
 * Returns true if the scores can be compared as they are: for one ranking, or if all are vector rankings with the same
 * model of a provider.
 */
function areComparable(rankings: readonly BaseRanking[]): boolean {
  if (rankings.length < 2) return true
  const scales = new Set(rankings.map(({ context }) => scaleOf(context)))
  const areVectorsOnly = rankings.every(
    ({ mode, context }) => mode === 'vector' && !context.isFittedByRuntime,
  )
  return areVectorsOnly && scales.size === 1
}

async function scaleScores(
  rankings: readonly BaseRanking[],
  text: string | undefined,
): Promise<MergedCandidate[][]> {
  const comparable = await pMap(rankings, ranking => comparableLists(ranking, text), {
    concurrency: concurrentSearchesMax,
  })
  const fused = fuseEach(comparable)
  return pMap(
    rankings,
    async (ranking, index) => {
      const ordered = applyReranking(ranking, fused[index]!)
      const weight = text === undefined ? 1 : await weightOf(ranking, ordered, text)
      const source = { ranking, fused: fused[index]!, ordered, knowledgeBaseWeight: weight }
      return ordered.map(candidate => ({
        ...candidate,
        lexical: candidate.scaled.lexical,
        score: weight * candidate.score,
        source,
      }))
    },
    { concurrency: concurrentSearchesMax },
  )
}

/**
 * Returns the lists of a ranking, with lexical scores divided by the total weight of the question's words. Without the
 * division, passages of a small knowledge base would come last, because every word is rarer in a large one.
 */
async function comparableLists({ lists, context, plan }: BaseRanking, text = ''): Promise<ScaledLists> {
  const scale = scaleOf(context)
  if (lists.lexical.length === 0) return { ...lists, scale }
  const total = totalWeight(await countOccurrences(context, text, [], plan.constraints))
  return {
    ...lists,
    scale,
    lexical: lists.lexical.map(({ record, score }) => ({ record, score: score / total })),
  }
}

/**
 * Returns an identifier of the similarity scale of a vector space. Fitted spaces share a scale, because the ranges of
 * their similarities are alike.
 */
function scaleOf({ isFittedByRuntime, embedding }: BaseContext): string {
  const { provider, modelName, embeddingDimension, distanceMetric } = embedding
  return isFittedByRuntime
    ? provider
    : JSON.stringify([provider, modelName, embeddingDimension, distanceMetric])
}

async function weightOf(
  ranking: BaseRanking,
  ranked: readonly ScoredRecord[],
  text: string,
): Promise<number> {
  const best = ranked.slice(0, passagesPerWeight)
  return weightMin + (1 - weightMin) * (await shareOfTerms(ranking, best, text))
}

/**
 * Returns the share of the question's distinct terms that occur in the passages, 0 to 1; 1 if the question has no terms.
 * Every term counts the same.
 */
async function shareOfTerms(
  ranking: BaseRanking,
  passages: readonly ScoredRecord[],
  text: string,
): Promise<number> {
  const { context, plan } = ranking
  const { visibility } = plan.constraints
  const queryTerms = new Set(terms(text))
  if (queryTerms.size === 0) return 1
  const numbers = passages.map(({ record }) => record)
  const views = await context.store.read(context.key, numbers, { vectors: false, visibility })
  const passageTerms = new Set(
    views.flatMap(view => terms(`${titleOfPayload(view.payload) ?? ''} ${view.text ?? ''}`)),
  )
  return [...queryTerms].filter(term => passageTerms.has(term)).length / queryTerms.size
}

/** Adds the name of the knowledge base to an error, unless the knowledge base is missing. */
function rethrowFor({ base: { name } }: BaseContext, error: unknown): never {
  if (!(error instanceof WbError) || error.code === 'knowledge_base_not_found') throw error
  throw new WbError(error.code, `${error.message} (knowledge base '${name}')`, error.facts, { cause: error })
}

function rethrow(error: unknown): never {
  throw error
}
