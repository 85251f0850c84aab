import { significanceLevel } from '../../evaluation/compare-results.ts'
import { crossValidate } from '../../evaluation/cross-validate.ts'
import { type EvalSettings, roundEstimate } from '../../evaluation/eval-result.ts'
import type { MetricName } from '../../evaluation/metrics.ts'
import { type Estimate, estimateMean, pairedPValue } from '../../evaluation/resample.ts'
import { UsageError } from '../errors.ts'
import { formatCounted, type Output } from '../terminal/output.ts'
import { formatDifference, formatInterval, formatMetric, formatP } from './format-metric.ts'
import { type EvalContext, measureSettings } from './measure-settings.ts'

const questionsPerFoldMin = 2
const weightSteps = 10
/** Weights to try. The default is first, so that it is chosen if another weight is only as good. */
const weights = [undefined, ...Array.from({ length: weightSteps + 1 }, (_, step) => step / weightSteps)]

export interface TuneOptions {
  readonly metric: MetricName
  /** Number of folds for cross-validation. */
  readonly folds: number
  readonly rerank: boolean
}

/** Held-out metrics of the tuned weight, and those of the default on the same questions. */
export interface TunedWeight {
  readonly metric: MetricName
  readonly questions: number
  readonly default: Estimate
  readonly tuned: Estimate
  /** Mean of the tuned minus the default score per question. */
  readonly difference: Estimate
  readonly p: number
  /** Weight that was chosen for each fold; null for the default. */
  readonly foldWeights: readonly (number | null)[]
  /** Weight that is best on all questions; null if no weight is significantly better than the default. */
  readonly lexicalWeight: number | null
}

/**
 * Chooses the lexical weight by cross-validation.
 *
 * @throws UsageError  there are too few questions
 */
export async function tuneWeight(
  context: EvalContext,
  { metric, folds, rerank }: TuneOptions,
): Promise<TunedWeight> {
  const questionCount = context.set.questions.length
  if (questionCount < folds * questionsPerFoldMin)
    throw new UsageError(
      `${formatCounted(folds, 'fold')} need at least ${folds * questionsPerFoldMin} questions with answers, and there are ${questionCount}`,
    )
  const candidates: number[][] = []
  for (const [index, lexicalWeight] of weights.entries()) {
    const settings: EvalSettings = {
      ...(lexicalWeight !== undefined && { lexicalWeight }),
      ...(rerank && { rerank }),
    }
    const { questions } = await measureSettings(context, settings, `weight ${index + 1} of ${weights.length}`)
    candidates.push(questions.map(question => question[metric]))
  }
  const { heldOut, chosen, best } = crossValidate(candidates, folds)
  const defaultScores = candidates[0]!
  const differences = heldOut.map((score, question) => score - defaultScores[question]!)
  const difference = roundEstimate(estimateMean(differences))
  const p = pairedPValue(differences)
  const isBetter = difference.value > 0 && p <= significanceLevel
  return {
    metric,
    questions: questionCount,
    default: roundEstimate(estimateMean(defaultScores)),
    tuned: roundEstimate(estimateMean(heldOut)),
    difference,
    p,
    foldWeights: chosen.map(index => weights[index] ?? null),
    lexicalWeight: isBetter ? (weights[best] ?? null) : null,
  }
}

/** Prints held-out metrics, and whether the tuned weight is better than the default; an object with `--json`. */
export function printTunedWeight(output: Output, tuned: TunedWeight): void {
  if (output.json) {
    output.value(tuned)
    return
  }
  output.list(
    [
      { name: 'default', ...tuned.default },
      { name: 'tuned', ...tuned.tuned },
    ],
    {
      columns: {
        'lexical weight': { value: row => row.name },
        [`held-out ${tuned.metric}`]: { value: row => formatMetric(row.value) },
        '95 % interval': { value: row => formatInterval(row) },
      },
      empty: [],
    },
  )
  const { difference, p, foldWeights, lexicalWeight } = tuned
  const comparison = `difference ${formatDifference(difference.value)}, 95 % interval ${formatInterval(difference)}, p = ${formatP(p)}`
  output.note(`  ${comparison}, ${formatCounted(tuned.questions, 'question')}`)
  output.note(
    `  weights chosen on the other folds: ${foldWeights.map(weight => weight ?? 'default').join(', ')}`,
  )
  output.note(
    lexicalWeight === null
      ? '  The default is as good: no weight is significantly better on questions that it was not chosen on.'
      : `  A weight is better than the default. Search with --lexical-weight ${lexicalWeight}.`,
  )
}
