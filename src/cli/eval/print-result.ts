import { type EvalResult, worstQuestions } from '../../evaluation/eval-result.ts'
import { metricNames } from '../../evaluation/metrics.ts'
import { formatCounted, type Output } from '../terminal/output.ts'
import { formatInterval, formatMetric } from './format-metric.ts'
import { formatSettings } from './settings.ts'

/**
 * Prints the metrics with their confidence intervals, and in a terminal also the worst questions; the result with
 * `--json`.
 *
 * @param limit  maximum number of questions
 */
export function printResult(output: Output, result: EvalResult, limit: number): void {
  if (output.json) {
    output.value(result)
    return
  }
  output.list(
    metricNames.map(name => ({ name, ...result.metrics[name] })),
    {
      columns: {
        metric: { value: row => row.name },
        value: { value: row => formatMetric(row.value) },
        '95 % interval': { value: row => formatInterval(row) },
      },
      empty: [],
    },
  )
  if (!output.interactive) return
  const worst = worstQuestions(result.questions, limit)
  if (worst.length > 0) {
    output.result('')
    output.list(worst, {
      columns: {
        'worst questions': { value: row => row.question, format: 'flexible' },
        'ndcg@10': { value: row => formatMetric(row['ndcg@10']) },
        'first answer': { value: row => (row.rank === null ? 'not found' : `rank ${row.rank}`) },
      },
      empty: [],
    })
  }
  output.note(
    output.errorStyle.dim(
      `  ${formatCounted(result.questions.length, 'question')} in ${result.kb}, settings: ${formatSettings(result.settings)}`,
    ),
  )
}
