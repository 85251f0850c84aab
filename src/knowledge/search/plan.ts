import { WbError } from '../../contract/errors.ts'
import type { SearchRequest } from '../../contract/knowledge.ts'
import { limits } from '../../contract/limits.ts'
import type { SearchConstraints } from '../../storage/content.ts'
import { type Filter, joinFilters, parseFilter } from '../../storage/filter.ts'
import type { Visibility } from '../../storage/visibility.ts'
import { rejectRawVector, requireFieldDimension } from '../guards.ts'
import type { BaseContext } from '../knowledge-bases.ts'
import { createShaping, type Shaping } from './shaping.ts'

/** Minimum number of candidates to request for a ranking whose scores are scaled over them. */
export const poolSizeMin = 100

/** How records are ranked: by vectors, by words, or by both. */
export type RankingMode = 'vector' | 'lexical' | 'hybrid'

/** A search request, with the defaults of the knowledge base applied. */
export interface SearchPlan {
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
  /** Stages that change the results after ranking; undefined if the request has none. */
  readonly shaping: Shaping | undefined
  /** Value of the API field `prefix`. */
  readonly isTyping: boolean
  readonly showVectors: boolean
  readonly showCoverage: boolean
  readonly showFolder: boolean
  readonly constraints: SearchConstraints
  readonly ignored: string[]
}

export function createPlan(
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
  const shaping = createShaping(body)
  if (shaping?.neighbors && !context.store.listing) ignored.push('neighbors')
  const mode = isModelAllowed ? rankingMode(hybrid, body.lexicalWeight) : 'lexical'
  return {
    mode,
    text: body.text,
    vector: body.vector,
    topK: body.topK,
    poolSize: Math.max(
      mode === 'vector' && !reranker && !shaping ? vectorPoolMin : poolSizeMin,
      body.topK,
      // Several results can become one passage, so more candidates are needed.
      shaping?.neighbors ? Math.min(body.topK * (2 * shaping.neighbors + 1), limits.topKMax) : 0,
    ),
    shaping,
    lexicalWeight: body.lexicalWeight,
    explains: body.explain ?? false,
    reranker,
    isTyping: body.prefix ?? false,
    showVectors: body.includeEmbeddings && !isFittedByRuntime,
    showCoverage: body.includeCoverage === true && hasCoverage,
    showFolder: body.includeFolder ?? false,
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

export function indexesWords({ store, collection }: BaseContext): boolean {
  return store.lexical !== undefined && collection.lexical
}

function rankingMode(hybrid: boolean, lexicalWeight: number | undefined): RankingMode {
  if (!hybrid || lexicalWeight === 0) return 'vector'
  return lexicalWeight === 1 ? 'lexical' : 'hybrid'
}
