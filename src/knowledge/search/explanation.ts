import { listNames, type SearchExplanation } from '../../contract/search-explanation.ts'
import type { ScoredRecord, SearchConstraints, WordScores } from '../../storage/content.ts'
import { requireLexical } from '../../storage/store-features.ts'
import { statisticsFor } from '../../storage/visibility.ts'
import type { BaseContext } from '../knowledge-bases.ts'
import { type FusedRecord, listWeights, type RankedLists } from './fusion.ts'
import { wordWeight } from './word-weights.ts'

/** The candidates of a knowledge base, and the request that found them. */
export interface ExplainedRanking {
  readonly context: BaseContext
  readonly mode: 'vector' | 'lexical' | 'hybrid'
  readonly lists: RankedLists
  /** Undefined unless the candidates were reranked by words. Likewise `serviceScores` by a service. */
  readonly reranking: object | undefined
  readonly serviceScores: { readonly service: string } | undefined
  readonly plan: {
    readonly text: string | undefined
    readonly isTyping: boolean
    readonly constraints: SearchConstraints
  }
}

/** A ranking with its candidates in the order before and after reranking. */
export interface OrderedRanking<R extends ExplainedRanking = ExplainedRanking> {
  readonly ranking: R
  readonly fused: readonly (ScoredRecord | FusedRecord)[]
  readonly ordered: readonly ScoredRecord[]
  /** Factor of the scores; undefined unless several knowledge bases were searched. */
  readonly knowledgeBaseWeight?: number | undefined
}

/** Explains the ranks of records, by record number. Records that are not candidates get null ranks. */
export async function explainRecords(
  { ranking, fused, ordered, knowledgeBaseWeight }: OrderedRanking,
  records: readonly number[],
): Promise<Map<number, SearchExplanation>> {
  const { lists, plan } = ranking
  const isReranked = ranking.reranking !== undefined || ranking.serviceScores !== undefined
  const service = ranking.serviceScores?.service ?? null
  const scores = await scoreWords(ranking, records)
  const weights = listWeights(lists)
  const used = listNames.flatMap(name => {
    const weight = weights[name]
    return weight === undefined ? [] : [{ name, weight, positions: positionsOf(listOf(lists, name)) }]
  })
  const [fusedPositions, orderedPositions] = [positionsOf(fused), positionsOf(ordered)]
  return new Map(
    records.map(record => {
      const fusedRecord = fusedPositions.get(record)?.item
      const explainedLists = used.map(({ name, weight, positions }) => {
        const found = positions.get(record)
        const scaledScore =
          fusedRecord && !('scaled' in fusedRecord) ? null : (fusedRecord?.scaled[name] ?? 0)
        const score = found?.item.score ?? null
        const contribution = scaledScore === null ? (score ?? 0) : weight * scaledScore
        return { name, weight, rank: found?.rank ?? null, score, scaledScore, contribution }
      })
      const [from, to] = [fusedPositions.get(record)?.rank, orderedPositions.get(record)?.rank]
      return [
        record,
        {
          fusedScore: explainedLists.reduce((sum, { contribution }) => sum + contribution, 0),
          lists: explainedLists,
          weighting: lists.weighting ?? null,
          words: scores ? toExplainedWords(scores, record) : [],
          filtered: plan.constraints.filter !== undefined,
          rerank: isReranked && from !== undefined && to !== undefined ? { from, to, service } : null,
          ...(knowledgeBaseWeight !== undefined && { knowledgeBaseWeight }),
        },
      ]
    }),
  )
}

/** Returns the words of the question, with their part in the scores of records; undefined if words were not used. */
async function scoreWords(
  { context, plan, mode }: ExplainedRanking,
  among: readonly number[],
): Promise<WordScores | undefined> {
  if (mode === 'vector') return undefined
  const { text, isTyping, constraints } = plan
  const statistics = statisticsFor(constraints.visibility)
  const query = { text: text!, among, isTyping, statistics, ...constraints }
  return requireLexical(context.store, context.collection).explain(context.key, query)
}

/** Returns the lexical scores of records with the constraints of a search. Omits records without a word of the question. */
export async function scoreLexically(
  ranking: ExplainedRanking,
  among: readonly number[],
): Promise<Map<number, number>> {
  const scores = new Map<number, number>()
  for (const word of (await scoreWords(ranking, among))?.words ?? [])
    for (const { record, score } of word.scores) scores.set(record, (scores.get(record) ?? 0) + score)
  return scores
}

function listOf(lists: RankedLists, name: (typeof listNames)[number]): readonly ScoredRecord[] {
  return name === 'sentences' ? (lists.sentences?.list ?? []) : lists[name]
}

function positionsOf<S extends ScoredRecord>(list: readonly S[]): Map<number, { rank: number; item: S }> {
  return new Map(list.map((item, index) => [item.record, { rank: index + 1, item }]))
}

function toExplainedWords({ records, words }: WordScores, record: number): SearchExplanation['words'] {
  return words.map(({ word, match, terms, records: passages, scores }) => ({
    word,
    match,
    terms: [...terms],
    passages,
    weight: wordWeight(records, passages),
    score: scores.find(scored => scored.record === record)?.score ?? 0,
  }))
}
