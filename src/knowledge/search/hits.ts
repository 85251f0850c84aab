import type { SearchHit } from '../../contract/knowledge.ts'
import type { RecordView, ScoredRecord } from '../../storage/content.ts'
import { toApiPayload } from '../payload.ts'
import { explainRecords, type OrderedRanking } from './explanation.ts'
import { type BaseRanking, countOccurrences } from './ranking.ts'
import { coverageByRecord } from './word-weights.ts'

/**
 * Reads the hits for candidates. Returns them by record number, in the given order. Omits records that no longer exist.
 */
async function readHits(
  { context, plan }: BaseRanking,
  candidates: readonly ScoredRecord[],
): Promise<Map<number, SearchHit>> {
  const { visibility } = plan.constraints
  const numbers = candidates.map(({ record }) => record)
  const [views, shares] = await Promise.all([
    context.store.read(context.key, numbers, { vectors: plan.showVectors, visibility }),
    plan.showCoverage
      ? countOccurrences(context, plan.text!, numbers, { visibility }).then(coverageByRecord)
      : undefined,
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
