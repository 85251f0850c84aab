import pMap from 'p-map'
import { queryWords } from '../../base/words.ts'
import type { SearchHit } from '../../contract/knowledge.ts'
import { limits } from '../../contract/limits.ts'
import type { RecordView } from '../../storage/content.ts'
import { totalRecordChars } from '../../storage/record-length.ts'
import { toApiPayload } from '../payload.ts'
import { explainRecords, type OrderedRanking } from './explanation.ts'
import { readPassage } from './neighbors.ts'
import { type BaseRanking, countOccurrences } from './ranking.ts'
import type { RankedCandidate, ShapedCandidate } from './shaped-candidate.ts'
import { coverageByRecord } from './word-weights.ts'

/** Number of results that are read at once. */
const sliceSize = 100
/** Maximum number of reads at the same time. */
const concurrentReadsMax = 4
/** Estimated length of a word in the explanation of a hit, and of the rest of an explanation, in characters of JSON. */
const explainedWordChars = 150
const explanationChars = 1_000

/** A result of a search, with its hit. */
export interface ResultHit {
  readonly hit: SearchHit
  readonly source: OrderedRanking<BaseRanking>
}

type SearchCandidate = RankedCandidate | ShapedCandidate
type ReadResult = { readonly result: SearchCandidate; readonly view: RecordView }

/**
 * Reads the hits of results, in their order. Joins neighboring chunks, and explains the hits if the request asks for it. Omits records that no longer
 * exist. Ends early, after the best results, if the hits get too long. `isCut` is true then.
 */
export async function readResults(
  results: readonly SearchCandidate[],
): Promise<{ hits: ResultHit[]; isCut: boolean }> {
  const allowed = results.slice(0, hitsMax(results[0]?.source.ranking))
  const { read, isCut } = await readViews(allowed)
  const details = new Map(
    await pMap(
      sourcesOf(read.map(({ result }) => result)),
      async source => {
        const own = read.filter(({ result }) => result.source === source)
        const records = own.map(({ result }) => result.record)
        return [source, await readDetails(source, records)] as const
      },
      { concurrency: concurrentReadsMax },
    ),
  )
  const hits = await pMap(
    read,
    async ({ result, view }): Promise<ResultHit> => {
      const { source } = result
      const hit = toHit({ result, view }, details.get(source)!)
      return { hit: 'view' in result ? await withShaping(hit, result) : hit, source }
    },
    { concurrency: concurrentReadsMax },
  )
  return {
    hits,
    isCut: isCut || allowed.length < results.length,
  }
}

/** Returns the number of hits that can be explained. Explanations of a long question are longer than passages. */
function hitsMax(ranking: BaseRanking | undefined): number {
  if (!ranking?.plan.explains) return limits.topKMax
  const words = queryWords(ranking.plan.text ?? '').length
  return Math.ceil(limits.answerChars / (explanationChars + explainedWordChars * words))
}

/** Reads results in slices, until the records that the caller may see get too long. */
async function readViews(
  results: readonly SearchCandidate[],
): Promise<{ read: ReadResult[]; isCut: boolean }> {
  const read: ReadResult[] = []
  let charsLeft = limits.answerChars
  for (let start = 0; start < results.length; start += sliceSize) {
    const slice = results.slice(start, start + sliceSize)
    const views = new Map<SearchCandidate, RecordView>()
    const unread = new Set(slice)
    for (const source of sourcesOf(slice)) {
      if (charsLeft < 0) break
      const own = slice.filter(result => result.source === source)
      const { records, lastRecord, chars } = await readRecords(source.ranking, own, charsLeft)
      charsLeft -= chars
      for (const result of own) {
        unread.delete(result)
        const view = records.get(result.record)
        if (view) views.set(result, view)
        if (charsLeft < 0 && result.record === lastRecord) break
      }
    }
    const end = slice.findIndex(result => unread.has(result))
    for (const result of end < 0 ? slice : slice.slice(0, end)) {
      const view = views.get(result)
      if (view) read.push({ result, view })
    }
    if (charsLeft < 0) return { read, isCut: end >= 0 || start + slice.length < results.length }
  }
  return { read, isCut: false }
}

async function readRecords(
  { context, plan }: BaseRanking,
  results: readonly SearchCandidate[],
  charsMax: number,
) {
  const { visibility } = plan.constraints
  const numbers = results.map(({ record }) => record)
  const options = { vectors: plan.showVectors, visibility, charsMax }
  const views = await context.store.read(context.key, numbers, options)
  return {
    records: new Map(views.map(view => [view.record, view])),
    lastRecord: views.at(-1)?.record,
    chars: totalRecordChars(views),
  }
}

/** Coverage and explanations of the hits of a knowledge base. */
interface HitDetails {
  /** By record number; undefined if the request does not ask for it. */
  readonly coverage: ReadonlyMap<number, number> | undefined
  readonly explanations: Awaited<ReturnType<typeof explainRecords>> | undefined
}

async function readDetails(
  source: OrderedRanking<BaseRanking>,
  records: readonly number[],
): Promise<HitDetails> {
  const { context, plan } = source.ranking
  const { visibility } = plan.constraints
  const [coverage, explanations] = await Promise.all([
    plan.showCoverage
      ? countOccurrences(context, plan.text!, records, { visibility }).then(coverageByRecord)
      : undefined,
    plan.explains ? explainRecords(source, records) : undefined,
  ])
  return { coverage, explanations }
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

function sourcesOf(results: readonly SearchCandidate[]): Set<OrderedRanking<BaseRanking>> {
  return new Set(results.map(({ source }) => source))
}

function toHit(
  { result: { record, score }, view }: ReadResult,
  { coverage, explanations }: HitDetails,
): SearchHit {
  return {
    id: view.id,
    score,
    ...(coverage && { coverage: coverage.get(record) ?? 0 }),
    payload: toApiPayload(view),
    ...(view.vector && { vector: Array.from(view.vector) }),
    ...(explanations && { explanation: explanations.get(record)! }),
  }
}
