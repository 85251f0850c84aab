import type { EvalResult } from '../../evaluation/eval-result.ts'
import { findGateFailures, worsenedQuestions } from '../../evaluation/gate.ts'
import { CommandFailed } from '../errors.ts'
import { formatMetric } from './format-metric.ts'
import { formatSettings } from './settings.ts'

const questionsShown = 5

export interface GateOptions {
  /** Path of the lockfile as typed. */
  readonly lockfile: string
  /** Difference by which a metric may fall. */
  readonly tolerance: number
  /** Command that accepts the new metrics. */
  readonly updateCommand: string
}

/**
 * Compares a result with the one in the lockfile.
 *
 * @throws CommandFailed  a metric fell by more than the tolerance, or the lockfile has other questions
 */
export function checkGate(
  result: EvalResult,
  locked: EvalResult,
  { lockfile, tolerance, updateCommand }: GateOptions,
): void {
  const update = ['To accept the new metrics, run:', updateCommand]
  if (result.questionsHash !== locked.questionsHash)
    throw new CommandFailed(`the questions have changed since ${lockfile} was written`, update)
  const failures = findGateFailures(result, locked, tolerance)
  if (failures.length === 0) return
  const metrics = failures.map(
    failure =>
      `${failure.metric} fell from ${formatMetric(failure.locked)} to ${formatMetric(failure.value)}`,
  )
  const questions = worsenedQuestions(locked, result, questionsShown).map(
    ({ question, before, after }) =>
      `${formatMetric(before['ndcg@10'])} → ${formatMetric(after['ndcg@10'])}  ${question}`,
  )
  const settings =
    formatSettings(result.settings) === formatSettings(locked.settings)
      ? []
      : [`${lockfile} was measured with other settings: ${formatSettings(locked.settings)}`]
  throw new CommandFailed(`${metrics.join(', ')}; the tolerance is ${tolerance}`, [
    ...settings,
    ...(questions.length > 0 ? ['Questions whose ndcg@10 fell most:', ...questions] : []),
    ...update,
  ])
}
