/** The number of results that `ndcg@10`, `recall@10` and `mrr@10` take into account. */
const cutoff = 10

/** Names of the metrics, in the order in which they are printed. */
export const metricNames = ['ndcg@10', 'recall@10', 'mrr@10', 'map'] as const
export type MetricName = (typeof metricNames)[number]
/** Metrics of a ranking, from 0 to 1. */
export type RankingMetrics = Readonly<Record<MetricName, number>>

/** The grades of a ranking, and those of all relevant answers of its question. */
export interface GradedRanking {
  /** Grade of each result, best result first; 0 is irrelevant. */
  readonly ranked: readonly number[]
  /** Grades of all relevant answers, in any order. */
  readonly relevant: readonly number[]
}

/**
 * Measures a ranking. All metrics are 0 if no answer is relevant.
 *
 * - `ndcg@10`: discounted cumulative gain of the first ten results, linear in the grade, as a share of the best possible
 *   one (Järvelin and Kekäläinen 2002, with the discount of trec_eval)
 * - `recall@10`: share of the relevant answers that are among the first ten results
 * - `mrr@10`: reciprocal rank of the first relevant result; 0 if it is not among the first ten
 * - `map`: average precision at the ranks of the relevant answers, in the whole ranking
 */
export function measureRanking({ ranked, relevant }: GradedRanking): RankingMetrics {
  if (relevant.length === 0) return { 'ndcg@10': 0, 'recall@10': 0, 'mrr@10': 0, map: 0 }
  const found = ranked.slice(0, cutoff).filter(grade => grade > 0).length
  const rank = firstRelevantRank(ranked)
  const ideal = [...relevant].sort((a, b) => b - a)
  return {
    'ndcg@10': discountedGain(ranked) / discountedGain(ideal),
    'recall@10': found / relevant.length,
    'mrr@10': rank !== undefined && rank <= cutoff ? 1 / rank : 0,
    map: averagePrecision(ranked, relevant.length),
  }
}

/** Returns the rank of the first relevant result, from 1; undefined if no result is relevant. */
export function firstRelevantRank(ranked: readonly number[]): number | undefined {
  const index = ranked.findIndex(grade => grade > 0)
  return index < 0 ? undefined : index + 1
}

function discountedGain(grades: readonly number[]): number {
  return grades.slice(0, cutoff).reduce((sum, grade, index) => sum + grade / Math.log2(index + 2), 0)
}

function averagePrecision(ranked: readonly number[], relevantCount: number): number {
  let found = 0
  let sum = 0
  for (const [index, grade] of ranked.entries()) if (grade > 0) sum += ++found / (index + 1)
  return sum / relevantCount
}
