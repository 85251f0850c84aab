import type { EvalResult, QuestionResult } from './eval-result.ts'
import { type MetricName, metricNames } from './metrics.ts'

/** Slack for rounding errors in a comparison of rounded metrics. */
const epsilon = 1e-9

/** A metric that fell below its value in the lockfile by more than the tolerance. */
export interface GateFailure {
  readonly metric: MetricName
  readonly locked: number
  readonly value: number
}

/**
 * Compares a result with the one in the lockfile.
 *
 * @param tolerance  difference by which a metric may fall, from 0 to 1
 */
export function findGateFailures(result: EvalResult, locked: EvalResult, tolerance: number): GateFailure[] {
  return metricNames
    .map(metric => ({ metric, locked: locked.metrics[metric].value, value: result.metrics[metric].value }))
    .filter(failure => failure.locked - failure.value > tolerance + epsilon)
}

/** A question in two results. */
export interface QuestionChange {
  readonly id: string
  readonly question: string
  readonly before: QuestionResult
  readonly after: QuestionResult
}

/** Returns the questions that both results contain, in the order of the first. */
export function pairQuestions(before: EvalResult, after: EvalResult): QuestionChange[] {
  const afterById = new Map(after.questions.map(result => [result.id, result]))
  return before.questions.flatMap(result => {
    const other = afterById.get(result.id)
    return other ? [{ id: result.id, question: result.question, before: result, after: other }] : []
  })
}

/** Returns the questions whose nDCG fell, the largest fall first. */
export function worsenedQuestions(before: EvalResult, after: EvalResult, limit: number): QuestionChange[] {
  return pairQuestions(before, after)
    .filter(change => differenceOf(change) < 0)
    .sort((a, b) => differenceOf(a) - differenceOf(b))
    .slice(0, limit)
}

export function differenceOf({ before, after }: QuestionChange, metric: MetricName = 'ndcg@10'): number {
  return after[metric] - before[metric]
}
