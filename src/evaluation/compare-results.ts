import { type EvalResult, roundEstimate } from './eval-result.ts'
import { differenceOf, pairQuestions, type QuestionChange } from './gate.ts'
import { type MetricName, metricNames } from './metrics.ts'
import { type Estimate, estimateMean, mean, pairedPValue } from './resample.ts'

/** Largest p value of a difference that is called significant. */
export const significanceLevel = 0.05

/** A metric of two results on the same questions. */
export interface MetricComparison {
  readonly metric: MetricName
  readonly a: number
  readonly b: number
  /** Mean of `b - a` per question. */
  readonly difference: Estimate
  /** Two-sided p value of the paired randomization test. */
  readonly p: number
}

/** Compares the metrics of questions that two results have in common. @param pairs  at least one */
export function compareMetrics(pairs: readonly QuestionChange[]): MetricComparison[] {
  return metricNames.map(metric => {
    const differences = pairs.map(pair => differenceOf(pair, metric))
    return {
      metric,
      a: mean(pairs.map(({ before }) => before[metric])),
      b: mean(pairs.map(({ after }) => after[metric])),
      difference: roundEstimate(estimateMean(differences)),
      p: pairedPValue(differences),
    }
  })
}

/** Returns the questions whose nDCG differs, the largest difference first. */
export function changedQuestions(a: EvalResult, b: EvalResult): QuestionChange[] {
  return pairQuestions(a, b)
    .filter(change => differenceOf(change) !== 0)
    .sort((one, other) => Math.abs(differenceOf(other)) - Math.abs(differenceOf(one)))
}
