import type { Caller } from '../access/caller.ts'
import { WbError } from '../contract/errors.ts'
import type { Hit, Search } from '../contract/knowledge.ts'
import { limits } from '../contract/limits.ts'
import type { Reach, RecordView, Scored } from '../storage/content.ts'
import { allOf, type Filter, parseFilter } from '../storage/filter.ts'
import { lexicalOf } from '../storage/missing.ts'
import { statisticsFor } from '../storage/visibility.ts'
import type { BaseContext } from './bases.ts'
import type { KnowledgeFilters } from './filters.ts'
import { feedbackPassages, feedbackQuery, fuse, type Lists } from './fusion.ts'
import { refuseRawVector, requireDimension } from './guards.ts'
import { shownPayload } from './payload.ts'
import { inOneSpace, type Space } from './space.ts'

/** Candidates that a ranking has at least, for the scale of its scores. */
const poolMin = 100

export interface Found {
  readonly hits: Hit[]
  /** Request fields that had no effect. */
  readonly ignored: string[]
}

/** The even mixture that needs no tuning. */
const lexicalWeightDefault = 0.5
/** A placeholder space knows spellings only; measured, it harms below this. */
const lexicalWeightOfPlaceholder = 0.8

/** What a request asks for, defaults of the knowledge base applied. */
interface Plan {
  readonly text: string | undefined
  readonly vector: Float32Array | undefined
  readonly topK: number
  readonly pool: number
  /** 0 is vector alone, 1 words alone; left out, it depends on the space. */
  readonly lexicalWeight: number | undefined
  readonly rerank: boolean
  readonly showVectors: boolean
  readonly reach: Reach
  readonly ignored: string[]
}

/** A vector, and the generation of the space that it stands in. */
interface QueryVector {
  readonly vector: Float32Array
  readonly generation: number
}

/** Candidates of a knowledge base in their order, which are not read yet. */
export interface Ranking {
  readonly context: BaseContext
  /** The scale of scores is told by more candidates than were asked for. */
  readonly lists: Lists
  readonly showVectors: boolean
  readonly visibility: Reach['visibility']
  readonly ignored: readonly string[]
}

/** What is known of who searches. */
export type Searching = Pick<Caller, 'visibility' | 'signal'>

/** Finds passages: by vector, by words, or by both fused. */
export class Searcher {
  constructor(
    private readonly space: Pick<Space, 'embed'>,
    private readonly filters: Pick<KnowledgeFilters, 'condition'>,
  ) {}

  /**
   * Best hits first, ties by age of the record.
   *
   * @throws validation_error, dimension_mismatch, vector_collection_not_allowed, vector_collection_required
   * @throws knowledge_filter_not_found
   * @throws hybrid_not_supported, rerank_not_supported  the store lacks lexical search
   * @throws embedding_unavailable, embedding_dimension_mismatch
   */
  async search(context: BaseContext, body: Search, caller: Searching): Promise<Found> {
    const ranking = await this.rankFor(context, body, caller)
    const hits = await readHits(ranking, ordered(ranking.lists).slice(0, body.topK))
    return { hits, ignored: [...ranking.ignored] }
  }

  /** The candidates alone: at least `topK`, where there are as many. */
  async rankFor(context: BaseContext, body: Search, caller: Searching): Promise<Ranking> {
    const plan = planOf(context, body, caller, await this.savedFilter(context, body))
    const found = await this.rankInForce(context, plan, caller.signal)
    return {
      context,
      lists: plan.rerank ? await rerank(context, plan, ordered(found).slice(0, plan.topK)) : found,
      showVectors: plan.showVectors,
      visibility: plan.reach.visibility,
      ignored: plan.ignored,
    }
  }

  private async savedFilter({ base }: BaseContext, { knowledgeFilterId }: Search) {
    return knowledgeFilterId === undefined
      ? undefined
      : this.filters.condition({ ...base, knowledgeFilterId })
  }

  /** A swap of the space between embedding the query and comparing it makes the ranking begin again. */
  private async rankInForce(context: BaseContext, plan: Plan, signal: AbortSignal): Promise<Lists> {
    return inOneSpace(() => this.rank(context, plan, signal).catch(unlessMoved))
  }

  private async rank(context: BaseContext, plan: Plan, signal: AbortSignal): Promise<Lists> {
    const { store, key } = context
    if (plan.lexicalWeight === 1)
      return { vector: [], lexical: await byWords(context, plan, plan.pool), lexicalWeight: 1 }
    const query = await this.queryVector(context, plan, signal)
    const nearest = store.nearest(key, { ...query, limit: plan.pool, ...plan.reach })
    if (plan.lexicalWeight === 0) return { vector: await nearest, lexical: [], lexicalWeight: 0 }
    const [vector, lexical] = await Promise.all([nearest, byWords(context, plan, plan.pool)])
    const isPlaceholder = context.fitted && query.generation === 0
    const standard = isPlaceholder ? lexicalWeightOfPlaceholder : lexicalWeightDefault
    const lists = { vector, lexical, lexicalWeight: plan.lexicalWeight ?? standard }
    if (!context.fitted || isPlaceholder) return lists
    return { ...lists, vector: await this.drawCloser(context, plan, query, fuse(lists)) }
  }

  private async queryVector(context: BaseContext, plan: Plan, signal: AbortSignal): Promise<QueryVector> {
    if (plan.vector) return { vector: plan.vector, generation: context.collection.generation }
    const passage = { title: null, text: plan.text! }
    const { vectors, generation } = await this.space.embed(context, [passage], 'query', signal)
    return { vector: vectors[0]!, generation }
  }

  /** Pseudo-relevance feedback over rows that the caller may see, as candidates are never others. */
  private async drawCloser(context: BaseContext, plan: Plan, query: QueryVector, fused: readonly Scored[]) {
    const best = fused.slice(0, feedbackPassages).map(hit => hit.record)
    const { visibility } = plan.reach
    const views = await context.store.read(context.key, best, { vectors: true, visibility })
    const drawn = feedbackQuery(
      query.vector,
      views.map(view => view.vector!),
    )
    return context.store.nearest(context.key, { ...query, vector: drawn, limit: plan.pool, ...plan.reach })
  }
}

/** The one ranking that lists come to; one list alone keeps its scores. */
export function ordered(lists: Lists): readonly Scored[] {
  if (lists.lexicalWeight === 0) return lists.vector
  return lists.lexicalWeight === 1 ? lists.lexical : fuse(lists)
}

function unlessMoved(error: unknown): undefined {
  if (!(error instanceof WbError) || error.facts.stale !== true) throw error
}

function planOf(context: BaseContext, body: Search, caller: Searching, saved: Filter | undefined): Plan {
  const { base, fitted, collection } = context
  const filter = allOf(parseFilter(body.filter), saved)
  if (body.vector) refuseRawVector('vector', context)
  if (body.vector) requireDimension('vector', body.vector.length, collection.dimension)
  if (body.hybrid && body.text === undefined) throw new WbError('validation_error', 'hybrid: needs text')
  if (body.rerank && body.text === undefined) throw new WbError('validation_error', 'rerank: needs text')
  const hybrid = body.hybrid ?? (body.text !== undefined && base.lexical.enabled)
  const ignored: string[] = []
  if (body.rerank === undefined && base.rerankingServiceId && body.text !== undefined) ignored.push('rerank')
  if (body.includeEmbeddings && fitted) ignored.push('includeEmbeddings')
  return {
    text: body.text,
    vector: body.vector && Float32Array.from(body.vector),
    topK: body.topK,
    pool: Math.max(poolMin, body.topK),
    lexicalWeight: hybrid ? body.lexicalWeight : 0,
    rerank: body.rerank ?? false,
    showVectors: body.includeEmbeddings && !fitted,
    reach: { visibility: caller.visibility, filter },
    ignored,
  }
}

function byWords(context: BaseContext, plan: Plan, limit: number): Promise<Scored[]> {
  return lexicalOf(context.store, context.collection).search(context.key, {
    text: plan.text!,
    limit,
    statistics: statisticsFor(plan.reach.visibility),
    ...plan.reach,
  })
}

/** The lexical score takes the place of the score, over the hits that were found. */
async function rerank(context: BaseContext, plan: Plan, hits: readonly Scored[]): Promise<Lists> {
  if (!context.store.lexical || !context.collection.lexical)
    throw new WbError(
      'rerank_not_supported',
      `the ${context.store.name} store has no lexical index to rerank with`,
    )
  const scores = new Map((await byWords(context, plan, limits.topKMax)).map(hit => [hit.record, hit.score]))
  const lexical = hits
    .map(hit => ({ record: hit.record, score: scores.get(hit.record) ?? 0 }))
    .sort((a, b) => b.score - a.score || a.record - b.record)
  return { vector: [], lexical, lexicalWeight: 1 }
}

/** The hits of a ranking that were chosen, in their order; those that are gone by now are left out. */
export async function readHits(
  { context, showVectors, visibility }: Ranking,
  chosen: readonly Scored[],
): Promise<Hit[]> {
  const numbers = chosen.map(hit => hit.record)
  const views = await context.store.read(context.key, numbers, { vectors: showVectors, visibility })
  const byRecord = new Map(views.map(view => [view.record, view]))
  return chosen.flatMap(({ record, score }) => {
    const view = byRecord.get(record)
    return view ? [toHit(view, score)] : []
  })
}

function toHit(view: RecordView, score: number): Hit {
  const hit: Hit = { id: view.id, score, payload: shownPayload(view) }
  return view.vector ? { ...hit, vector: Array.from(view.vector) } : hit
}
