import type { Metric, ScoredRecord } from '../content.ts'
import type { RecordSet } from '../record-set.ts'
import { TopResults } from '../top-results.ts'
import { ExactScorer } from './exact-scorer.ts'
import type { ScanModule } from './module.ts'

/** Rows read from disk: `vectors` contains one vector per record, one after another. */
export interface VectorBlock {
  readonly records: ArrayLike<number>
  readonly vectors: Float32Array
}

/** A search over rows that are read from disk. */
export interface BlockQuery {
  readonly dimension: number
  readonly metric: Metric
  readonly query: Float32Array
  readonly k: number
  /** Records to search; all records if undefined. */
  readonly allowed?: RecordSet | undefined
}

/**
 * Returns the `k` nearest of rows that do not fit into memory, nearest first. The result is identical to that of a
 * `Segment` with all rows.
 *
 * @param blocks  must contain each record at most once
 * @throws RangeError  the number of floats in a block does not match its records, or the query has the wrong length
 */
export function scanBlocks(
  module: ScanModule,
  blocks: Iterable<VectorBlock>,
  { dimension, metric, query, k, allowed }: BlockQuery,
): ScoredRecord[] {
  const scorer = new ExactScorer(module, dimension, metric)
  scorer.setQuery(query)
  const best = new TopResults(k)
  for (const { records, vectors } of blocks) {
    if (vectors.length !== records.length * dimension)
      throw new RangeError(
        `a block has ${vectors.length} floats for ${records.length} vectors of ${dimension} floats`,
      )
    const rows = Array.from(records, (record, at) => ({ record, at })).filter(
      ({ record }) => !allowed || allowed.has(record),
    )
    const scores = scorer.scores(rows.map(({ at }) => vectors.subarray(at * dimension, (at + 1) * dimension)))
    for (const [at, { record }] of rows.entries()) best.offer(scores[at]!, record)
  }
  return best.ranked()
}
