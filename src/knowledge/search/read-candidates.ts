import type { RecordView } from '../../storage/content.ts'
import { totalRecordChars } from '../../storage/record-length.ts'
import type { OrderedRanking } from './explanation.ts'
import type { BaseRanking } from './ranking.ts'
import type { RankedCandidate } from './shaped-candidate.ts'

/** Number of candidates that are read at once. */
const sliceSize = 100

/** A candidate with its record. */
export interface ReadCandidate<Candidate extends RankedCandidate> {
  readonly candidate: Candidate
  readonly view: RecordView
}

interface ReadOptions {
  /** True to read the vectors that the requests show, too. */
  readonly vectors: boolean
  /** Total length of the records, in characters of JSON, after which no others are read. */
  readonly charsMax: number
}

/**
 * Reads the records of candidates in their order, in slices, with the visibility of their searches. Omits records that no longer
 * exist. `isCut` is true if the records get too long, so that the last ones are missing.
 */
export async function readCandidates<Candidate extends RankedCandidate>(
  candidates: readonly Candidate[],
  { vectors, charsMax }: ReadOptions,
): Promise<{ read: ReadCandidate<Candidate>[]; isCut: boolean }> {
  const read: ReadCandidate<Candidate>[] = []
  let charsLeft = charsMax
  for (let start = 0; start < candidates.length; start += sliceSize) {
    const slice = candidates.slice(start, start + sliceSize)
    const views = new Map<Candidate, RecordView>()
    const unread = new Set(slice)
    for (const source of rankingsOf(slice)) {
      if (charsLeft < 0) break
      const own = slice.filter(candidate => candidate.source === source)
      const { records, lastRecord, chars } = await readRecords(source.ranking, own, {
        vectors,
        charsMax: charsLeft,
      })
      charsLeft -= chars
      for (const candidate of own) {
        unread.delete(candidate)
        const view = records.get(candidate.record)
        if (view) views.set(candidate, view)
        if (charsLeft < 0 && candidate.record === lastRecord) break
      }
    }
    const end = slice.findIndex(candidate => unread.has(candidate))
    for (const candidate of end < 0 ? slice : slice.slice(0, end)) {
      const view = views.get(candidate)
      if (view) read.push({ candidate, view })
    }
    if (charsLeft < 0) return { read, isCut: end >= 0 || start + slice.length < candidates.length }
  }
  return { read, isCut: false }
}

async function readRecords(
  { context, plan }: BaseRanking,
  candidates: readonly RankedCandidate[],
  options: ReadOptions,
) {
  const { visibility } = plan.constraints
  const numbers = candidates.map(({ record }) => record)
  const vectors = options.vectors && plan.showVectors
  const views = await context.store.read(context.key, numbers, { ...options, vectors, visibility })
  return {
    records: new Map(views.map(view => [view.record, view])),
    lastRecord: views.at(-1)?.record,
    chars: totalRecordChars(views),
  }
}

/** Returns the rankings that contain candidates. */
export function rankingsOf(candidates: readonly RankedCandidate[]): Set<OrderedRanking<BaseRanking>> {
  return new Set(candidates.map(({ source }) => source))
}
