import pMap from 'p-map'
import type { SearchHit } from '../../contract/knowledge.ts'
import type { RecordView, ScoredRecord } from '../../storage/content.ts'
import { toApiPayload } from '../payload.ts'
import { explainRecords, type OrderedRanking } from './explanation.ts'
import { readPassage } from './neighbors.ts'
import { type BaseRanking, countOccurrences } from './ranking.ts'
import type { RankedCandidate, ShapedCandidate } from './shaped-candidate.ts'
import { coverageByRecord } from './word-weights.ts'

/** Maximum number of reads at the same time. */
const concurrentReadsMax = 4

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

/** A result of a search, with its hit. */
export interface ResultHit {
  readonly hit: SearchHit
  readonly source: OrderedRanking<BaseRanking>
}

/**
 * Reads the hits of results, in their order. Joins neighboring chunks, and explains the hits if the request asks for it.
 * Omits results that no longer exist.
 */
export async function readResults(
  results: readonly (RankedCandidate | ShapedCandidate)[],
): Promise<ResultHit[]> {
  const sources = [...new Set(results.map(({ source }) => source))]
  const hits = new Map(
    await pMap(
      sources,
      async source => {
        const own = results.filter(result => result.source === source)
        return [source, await readExplainedHits(source, own)] as const
      },
      { concurrency: concurrentReadsMax },
    ),
  )
  const read = await pMap(
    results,
    async (result): Promise<ResultHit | undefined> => {
      const { source, record } = result
      const hit = hits.get(source)!.get(record)
      return hit && { hit: 'view' in result ? await withShaping(hit, result) : hit, source }
    },
    { concurrency: concurrentReadsMax },
  )
  return read.filter(result => result !== undefined)
}

/** Like {@link readHits}, but also explains the hits if the request asks for it. */
async function readExplainedHits(
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

async function withShaping(hit: SearchHit, candidate: ShapedCandidate): Promise<SearchHit> {
  const { changes, range } = candidate
  const explained = hit.explanation ? { ...hit, explanation: { ...hit.explanation, ...changes } } : hit
  const passage = range && (await readPassage(candidate, range))
  if (!passage) return explained
  return {
    ...explained,
    chunks: passage.chunks,
    payload: { ...explained.payload, chunkText: passage.text },
  }
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
