import pMap from 'p-map'
import { queryWords } from '../../base/words.ts'
import type { SearchHit } from '../../contract/knowledge.ts'
import { limits } from '../../contract/limits.ts'
import { folderOfRecord, toApiPayload } from '../payload.ts'
import { explainRecords, type OrderedRanking } from './explanation.ts'
import { type JoinedPassage, readPassage } from './neighbors.ts'
import { type BaseRanking, countOccurrences } from './ranking.ts'
import { type ReadCandidate, rankingsOf, readCandidates } from './read-candidates.ts'
import type { RankedCandidate, ShapedCandidate } from './shaped-candidate.ts'
import { coverageByRecord } from './word-weights.ts'

/** Maximum number of knowledge bases whose hits are explained at the same time. */
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

/**
 * Reads the hits of results, in their order. Joins neighboring chunks, and explains the hits if the request asks for it. Omits
 * records that no longer exist. Ends early, after the best results, if the hits get too long. `isCut` is true then.
 */
export async function readResults(
  results: readonly SearchCandidate[],
): Promise<{ hits: ResultHit[]; isCut: boolean }> {
  const allowed = results.slice(0, hitsMax(results[0]?.source.ranking))
  const { read, isCut } = await readCandidates(allowed, { vectors: true, charsMax: limits.answerChars })
  const details = new Map(
    await pMap(
      rankingsOf(read.map(({ candidate }) => candidate)),
      async source => {
        const own = read.filter(({ candidate }) => candidate.source === source)
        const records = own.map(({ candidate }) => candidate.record)
        return [source, await readDetails(source, records)] as const
      },
      { concurrency: concurrentReadsMax },
    ),
  )
  const hits: ResultHit[] = []
  let charsLeft = limits.answerChars
  for (const { candidate, view } of read) {
    if (charsLeft < 0) return { hits, isCut: true }
    const { source } = candidate
    const hit = toHit({ candidate, view }, details.get(source)!)
    if (!('view' in candidate)) {
      hits.push({ hit, source })
      continue
    }
    const joined = candidate.range && (await readPassage(candidate, candidate.range, charsLeft))
    charsLeft -= joined?.charsRead ?? 0
    hits.push({ hit: withShaping(hit, candidate, joined?.passage), source })
  }
  return { hits, isCut: isCut || allowed.length < results.length }
}

/** Returns the number of hits that can be explained. Explanations of a long question are longer than passages. */
function hitsMax(ranking: BaseRanking | undefined): number {
  if (!ranking?.plan.explains) return limits.topKMax
  const words = queryWords(ranking.plan.text ?? '').length
  return Math.ceil(limits.answerChars / (explanationChars + explainedWordChars * words))
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

function withShaping(
  hit: SearchHit,
  { changes }: ShapedCandidate,
  passage: JoinedPassage | undefined,
): SearchHit {
  const explained = hit.explanation ? { ...hit, explanation: { ...hit.explanation, ...changes } } : hit
  if (!passage) return explained
  return {
    ...explained,
    chunks: passage.chunks,
    payload: { ...explained.payload, chunkText: passage.text },
  }
}

function toHit(
  { candidate: { record, score, source }, view }: ReadCandidate<SearchCandidate>,
  { coverage, explanations }: HitDetails,
): SearchHit {
  const { context, plan } = source.ranking
  const folder = plan.showFolder && folderOfRecord(context.base, view)
  return {
    id: view.id,
    score,
    ...(coverage && { coverage: coverage.get(record) ?? 0 }),
    ...(folder && { folder }),
    payload: toApiPayload(view),
    ...(view.vector && { vector: Array.from(view.vector) }),
    ...(explanations && { explanation: explanations.get(record)! }),
  }
}
