import {
  firstRelevantRank,
  type GradedRanking,
  type MetricName,
  measureRanking,
  metricNames,
  type RankingMetrics,
} from './metrics.ts'
import { type Estimate, estimateMean } from './resample.ts'

/** Search settings that were measured. Omitted settings have the defaults of the runtime. */
export interface EvalSettings {
  readonly mode?: 'hybrid' | 'lexical' | 'vector'
  readonly lexicalWeight?: number
  readonly rerank?: boolean
}

/** Metrics of one question. */
export interface QuestionResult extends RankingMetrics {
  readonly id: string
  readonly question: string
  /** Rank of the first relevant result, from 1; null if all measured results are irrelevant. */
  readonly rank: number | null
}

/** Metrics of a question set in a knowledge base. It is printed with `--json`, and stored in lockfiles. */
export interface EvalResult {
  /** Name of the knowledge base. */
  readonly kb: string
  readonly questionsHash: string
  readonly settings: EvalSettings
  readonly metrics: Readonly<Record<MetricName, Estimate>>
  /** In the order of the file. */
  readonly questions: readonly QuestionResult[]
}

/** Four digits are more than the metrics of any question set are precise to, and keep lockfiles readable. */
const digits = 10_000

function round(value: number): number {
  return Math.round(value * digits) / digits
}

export function questionResult(id: string, question: string, ranking: GradedRanking): QuestionResult {
  const metrics = measureRanking(ranking)
  const rounded = Object.fromEntries(
    metricNames.map(name => [name, round(metrics[name])]),
  ) as RankingMetrics & object
  return { id, question, rank: firstRelevantRank(ranking.ranked) ?? null, ...rounded }
}

/** Estimates the means of all metrics. `questions` must not be empty. */
export function estimateMetrics(questions: readonly QuestionResult[]): EvalResult['metrics'] {
  return Object.fromEntries(
    metricNames.map(name => [name, roundEstimate(estimateMean(questions.map(question => question[name])))]),
  ) as EvalResult['metrics']
}

export function roundEstimate({ value, low, high }: Estimate): Estimate {
  return { value: round(value), low: round(low), high: round(high) }
}

/** Returns the questions with the lowest nDCG, worst first, without those that have the best possible one. */
export function worstQuestions(questions: readonly QuestionResult[], limit: number): QuestionResult[] {
  return questions
    .filter(question => question['ndcg@10'] < 1)
    .sort((a, b) => a['ndcg@10'] - b['ndcg@10'] || a['mrr@10'] - b['mrr@10'] || a.map - b.map)
    .slice(0, limit)
}
