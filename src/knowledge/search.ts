import type { Caller } from '../access/caller.ts'
import { WbError } from '../contract/errors.ts'
import type { Hit, Search } from '../contract/knowledge.ts'
import { limits } from '../contract/limits.ts'
import type { Reach, RecordView, Scored } from '../storage/content.ts'
import { parseFilter } from '../storage/filter.ts'
import { lexicalOf } from '../storage/missing.ts'
import { statisticsFor } from '../storage/visibility.ts'
import type { BaseContext } from './bases.ts'
import { feedbackPassages, feedbackQuery, fuse } from './fusion.ts'
import { rejectRawVector, requireDimension } from './guards.ts'
import { shownPayload } from './payload.ts'
import { inOneSpace, type Space } from './space.ts'

/** Candidates that each ranking contributes to a fused one. */
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

/** Finds passages: by vector, by words, or by both fused. */
export class Searcher {
  constructor(private readonly space: Space) {}

  /**
   * Best hits first, ties by age of the record.
   *
   * @throws validation_error, dimension_mismatch, vector_collection_not_allowed
   * @throws hybrid_not_supported, rerank_not_supported  the store lacks lexical search
   * @throws embedding_unavailable, embedding_dimension_mismatch
   */
  async search(context: BaseContext, body: Search, caller: Caller): Promise<Found> {
    const plan = planOf(context, body, caller)
    const ranked = (await this.rankInForce(context, plan, caller.signal)).slice(0, plan.topK)
    const ordered = plan.rerank ? await rerank(context, plan, ranked) : ranked
    const numbers = ordered.map(hit => hit.record)
    const { visibility } = caller
    const views = await context.store.read(context.key, numbers, { vectors: plan.showVectors, visibility })
    return { hits: toHits(ordered, views), ignored: plan.ignored }
  }

  /** A swap of the space between embedding the query and comparing it makes the ranking begin again. */
  private async rankInForce(context: BaseContext, plan: Plan, signal: AbortSignal): Promise<Scored[]> {
    return inOneSpace(() => this.rank(context, plan, signal).catch(unlessMoved))
  }

  private async rank(context: BaseContext, plan: Plan, signal: AbortSignal): Promise<Scored[]> {
    const { store, key } = context
    if (plan.lexicalWeight === 1) return byWords(context, plan, plan.pool)
    const query = await this.queryVector(context, plan, signal)
    const nearest = store.nearest(key, { ...query, limit: plan.pool, ...plan.reach })
    if (plan.lexicalWeight === 0) return nearest
    const [near, worded] = await Promise.all([nearest, byWords(context, plan, plan.pool)])
    const isPlaceholder = context.fitted && query.generation === 0
    const weight = plan.lexicalWeight ?? (isPlaceholder ? lexicalWeightOfPlaceholder : lexicalWeightDefault)
    const fused = fuse(near, worded, weight)
    if (!context.fitted || isPlaceholder) return fused
    const closer = await this.drawCloser(context, plan, query, fused)
    return fuse(closer, worded, weight)
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

function unlessMoved(error: unknown): undefined {
  if (!(error instanceof WbError) || error.facts.stale !== true) throw error
}

function planOf(context: BaseContext, body: Search, caller: Caller): Plan {
  const { base, fitted, collection } = context
  const filter = parseFilter(body.filter)
  if (body.vector && fitted) rejectRawVector('vector')
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
    pool: Math.min(limits.topKMax, hybrid ? Math.max(poolMin, body.topK) : body.topK),
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
async function rerank(context: BaseContext, plan: Plan, hits: readonly Scored[]): Promise<Scored[]> {
  if (!context.store.lexical || !context.collection.lexical)
    throw new WbError(
      'rerank_not_supported',
      `the ${context.store.name} store has no lexical index to rerank with`,
    )
  const scores = new Map((await byWords(context, plan, limits.topKMax)).map(hit => [hit.record, hit.score]))
  return hits
    .map(hit => ({ record: hit.record, score: scores.get(hit.record) ?? 0 }))
    .sort((a, b) => b.score - a.score || a.record - b.record)
}

function toHits(ranked: readonly Scored[], views: readonly RecordView[]): Hit[] {
  const byRecord = new Map(views.map(view => [view.record, view]))
  return ranked.flatMap(({ record, score }) => {
    const view = byRecord.get(record)
    return view ? [toHit(view, score)] : []
  })
}

function toHit(view: RecordView, score: number): Hit {
  const hit: Hit = { id: view.id, score, payload: shownPayload(view) }
  return view.vector ? { ...hit, vector: Array.from(view.vector) } : hit
}
