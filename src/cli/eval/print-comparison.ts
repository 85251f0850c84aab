import { changedQuestions, compareMetrics, significanceLevel } from '../../evaluation/compare-results.ts'
import type { EvalResult } from '../../evaluation/eval-result.ts'
import { differenceOf, pairQuestions } from '../../evaluation/gate.ts'
import { UsageError } from '../errors.ts'
import { formatCounted, type Output } from '../terminal/output.ts'
import { formatDifference, formatInterval, formatMetric, formatP } from './format-metric.ts'

/**
 * Prints the metrics of two results, and the questions that differ most; an object with `--json`.
 *
 * @param limit  maximum number of questions
 * @throws UsageError  the results have no question in common
 */
export function printComparison(output: Output, a: EvalResult, b: EvalResult, limit: number): void {
  const pairs = pairQuestions(a, b)
  if (pairs.length === 0) throw new UsageError('the two results have no question in common')
  if (a.questionsHash !== b.questionsHash)
    output.warn(
      `  ! the two results have different questions or answers; compared the ${formatCounted(pairs.length, 'question')} in both`,
    )
  const metrics = compareMetrics(pairs)
  const changed = changedQuestions(a, b)
  if (output.json) {
    const changes = changed.map(change => ({
      id: change.id,
      question: change.question,
      a: change.before,
      b: change.after,
    }))
    output.value({ questions: pairs.length, a: a.settings, b: b.settings, metrics, changes })
    return
  }
  output.list(metrics, {
    columns: {
      metric: { value: row => row.metric },
      A: { value: row => formatMetric(row.a) },
      B: { value: row => formatMetric(row.b) },
      difference: { value: row => formatDifference(row.difference.value) },
      '95 % interval': { value: row => formatInterval(row.difference) },
      p: { value: row => formatP(row.p) },
    },
    empty: [],
  })
  if (!output.interactive) return
  if (changed.length > 0 && limit > 0) {
    output.result('')
    output.list(changed.slice(0, limit), {
      columns: {
        'largest differences of ndcg@10': { value: row => row.question, format: 'flexible' },
        A: { value: row => formatMetric(row.before['ndcg@10']) },
        B: { value: row => formatMetric(row.after['ndcg@10']) },
        difference: { value: row => formatDifference(differenceOf(row)) },
      },
      empty: [],
    })
  }
  const [{ difference, p }] = metrics as [(typeof metrics)[number]]
  const better = difference.value > 0 ? 'B' : 'A'
  const verdict = p <= significanceLevel ? `${better} is better` : 'no significant difference'
  output.note(
    `  ${verdict}: ndcg@10 ${formatDifference(difference.value)}, p = ${formatP(p)}, ${formatCounted(pairs.length, 'question')}`,
  )
}
