import { unitVector } from '../../base/unit-vector.ts'
import type { SearchExplanation } from '../../contract/search-explanation.ts'
import type { ScoredRecord } from '../../storage/content.ts'
import type { EmbeddedQuery } from '../passage-operations.ts'

/** Number of best passages toward which the query vector is moved. */
export const feedbackPassagesMax = 3
const feedbackWeight = 0.5
/** Constant of reciprocal rank fusion. It is added to a rank before its reciprocal is taken. */
const rankOffset = 1

/** A record of a fused ranking. */
export interface FusedRecord extends ScoredRecord {
  /** Scores in the lists, scaled to 0..1; 0 for a list that does not contain the record. */
  readonly scaled: Readonly<Record<'vector' | 'lexical' | 'sentences', number>>
}

/**
 * Rankings of the same collection that are to be fused. A record occurs at most once in each list. Scores are finite, and
 * can be compared only within a list.
 */
export interface RankedLists {
  readonly vector: readonly ScoredRecord[]
  readonly lexical: readonly ScoredRecord[]
  /** Weight of the lexical list: 0 for vectors only, 1 for words only. */
  readonly lexicalWeight: number
  /** Ranking by the sentence model, with its weight: 0 to 1. The other two lists share the rest. */
  readonly sentences?: { readonly list: readonly ScoredRecord[]; readonly weight: number } | undefined
  /** Requested maximum length of each list. A list of this length may be incomplete. */
  readonly poolSize: number
  /** The vector that ranked `vector`, after feedback; absent if vectors did not rank records. */
  readonly query?: EmbeddedQuery | undefined
  /** How the weights were chosen; absent if there is only one list. */
  readonly weighting?: Weighting | undefined
}

/** How the weights of the lists were chosen. */
type Weighting = NonNullable<SearchExplanation['weighting']>

/** Returns the weights of those lists that rank records. They add up to 1. */
export function listWeights({ lexicalWeight, sentences, query, weighting }: RankedLists) {
  const others = 1 - (sentences?.weight ?? 0)
  const isLexical = weighting !== undefined || lexicalWeight > 0
  return {
    lexical: isLexical ? others * lexicalWeight : undefined,
    vector: query && others * (1 - lexicalWeight),
    sentences: sentences?.weight,
  }
}

/**
 * Weights of the sentence model by coverage, between which others are interpolated. Chosen on the questions of
 * `test/fixtures/questions` with the half `tune`, and on Cranfield: docs/decisions/0048-fusion-by-coverage.md.
 */
const sentenceWeights = [
  { coverage: 0, weight: 0.85 },
  { coverage: 0.4, weight: 0.85 },
  { coverage: 0.6, weight: 0.3 },
  { coverage: 1, weight: 0 },
] as const

/**
 * Returns the weight of the sentence model, 0 to 1. If a passage has the words of the question, words decide; if none
 * does, meaning decides.
 *
 * @param coverage  highest share of the question's words in a passage, 0 to 1
 */
export function sentenceWeight(coverage: number): number {
  const after = sentenceWeights.findIndex(point => point.coverage >= coverage)
  const [high, low] = [sentenceWeights[Math.max(after, 1)]!, sentenceWeights[Math.max(after, 1) - 1]!]
  const share = (coverage - low.coverage) / (high.coverage - low.coverage)
  return low.weight + share * (high.weight - low.weight)
}

/** Rankings with an identifier of their similarity scale. Similarities of the same scale can be compared. */
export type ScaledLists = RankedLists & { readonly scale: string }

/** Fuses rankings into one, as {@link fuseEach} does. */
export function fuseLists(lists: RankedLists): FusedRecord[] {
  return fuseEach([{ ...lists, scale: '' }])[0]!
}

/**
 * Fuses the rankings of each collection separately. Scores of different collections can be compared.
 *
 * First, scores are scaled linearly: the best score becomes 1, and scores at or below a floor become 0. Scores of words and
 * of sentences are scaled together over all collections, and vector scores over those of the same scale. The floor is:
 *
 * - for vectors and sentences, the lowest score, but at least 0, because models differ in the similarity of unrelated texts;
 * - for words, the lowest score in the lists of full length, because these may omit records with lower scores; 0 if
 *   there are no such lists.
 *
 * Then, a record gets the score (1 - s) × ((1 - w) × vector score + w × lexical score) + s × sentence score, where w is
 * `lexicalWeight`, and s is the weight of the sentences. The score in a list is 0 if the list does not contain the record.
 * Records with equal scores are ordered by lexical score, then by number. So if w is at least 0.5 without sentences, and the
 * lexical lists contain only one record, it comes first.
 */
export function fuseEach(collections: readonly ScaledLists[]): FusedRecord[][] {
  const lexicalScaler = scalerFor(
    collections.flatMap(({ lexical }) => lexical),
    collections.flatMap(({ lexical, poolSize }) => (lexical.length < poolSize ? [] : lexical)),
  )
  const allSentences = collections.flatMap(({ sentences }) => sentences?.list ?? [])
  const sentenceScaler = scalerFor(allSentences, allSentences)
  return collections.map(({ vector, lexical, lexicalWeight, sentences, scale }) => {
    const sameScale = collections.filter(other => other.scale === scale).flatMap(other => other.vector)
    const byVector = scoresOf(vector, scalerFor(sameScale, sameScale))
    const byWords = scoresOf(lexical, lexicalScaler)
    const bySentences = scoresOf(sentences?.list ?? [], sentenceScaler)
    const sentenceWeight = sentences?.weight ?? 0
    const records = new Set([...byVector.keys(), ...byWords.keys(), ...bySentences.keys()])
    return Array.from(records, record => {
      const words = byWords.get(record) ?? 0
      const [similarity, meaning] = [byVector.get(record) ?? 0, bySentences.get(record) ?? 0]
      const others = (1 - lexicalWeight) * similarity + lexicalWeight * words
      const score = (1 - sentenceWeight) * others + sentenceWeight * meaning
      const scaled = { vector: similarity, lexical: words, sentences: meaning }
      return { record, score, scaled }
    }).sort((a, b) => b.score - a.score || b.scaled.lexical - a.scaled.lexical || a.record - b.record)
  })
}

type Scaler = (score: number) => number

/**
 * Returns a function that maps the best score of `all` to 1, and the floor to 0.
 *
 * @param floorScores  the lowest of these scores is the floor; it is at least 0, and 0 if there are no scores
 */
function scalerFor(all: readonly { score: number }[], floorScores: readonly { score: number }[]): Scaler {
  const max = all.reduce((highest, { score }) => Math.max(highest, score), 0)
  const min = floorScores.reduce((lowest, { score }) => Math.min(lowest, score), Number.POSITIVE_INFINITY)
  const floor = floorScores.length === 0 ? 0 : Math.max(0, min)
  return score => {
    if (score <= 0) return 0
    return score >= max ? 1 : Math.max(0, (score - floor) / (max - floor))
  }
}

function scoresOf(list: readonly ScoredRecord[], scaler: Scaler): Map<number, number> {
  return new Map(list.map(({ record, score }) => [record, scaler(score)]))
}

/**
 * Reranks a ranking by reciprocal rank fusion with the lexical ranks of its records: (1 - w) / (1 + rank)
 * + w / (1 + lexical rank), where w is `lexicalRankWeight`. The score at each position stays the same: a record that moves gets the score of its
 * new position. So the scores can still be compared with those of other rankings.
 *
 * @param lexical            lexical ranking, best first; records that are not in `ranked` are ignored
 * @param lexicalRankWeight  0 to 1
 * @see Cormack, Clarke, Büttcher, "Reciprocal rank fusion outperforms Condorcet", SIGIR 2009
 */
export function rerank<S extends ScoredRecord>(
  ranked: readonly S[],
  lexical: readonly ScoredRecord[],
  lexicalRankWeight: number,
): S[] {
  const records = new Set(ranked.map(({ record }) => record))
  const ranking = lexical.filter(({ record }) => records.has(record))
  const lexicalRanks = new Map(ranking.map(({ record }, index) => [record, index + 1]))
  return ranked
    .map((candidate, index) => {
      const lexicalRank = lexicalRanks.get(candidate.record) ?? Number.POSITIVE_INFINITY
      const fusedScore =
        (1 - lexicalRankWeight) / (rankOffset + index + 1) + lexicalRankWeight / (rankOffset + lexicalRank)
      return { candidate, fusedScore }
    })
    .sort((a, b) => b.fusedScore - a.fusedScore)
    .map(({ candidate }, index) => ({ ...candidate, score: ranked[index]!.score }))
}

/**
 * Moves the candidates that a reranker scored to the front, best first; candidates with equal scores, and those without,
 * keep their order. As in {@link rerank}, the score at each position stays the same.
 */
export function rerankByScores<S extends ScoredRecord>(
  ranked: readonly S[],
  scores: ReadonlyMap<number, number>,
): S[] {
  const scoreOf = ({ record }: S) => scores.get(record) ?? Number.NEGATIVE_INFINITY
  const compare = (a: number, b: number) => (a === b ? 0 : b - a)
  return ranked
    .toSorted((a, b) => compare(scoreOf(a), scoreOf(b)))
    .map((candidate, index) => ({ ...candidate, score: ranked[index]!.score }))
}

/** A passage that the query vector is moved toward. */
export interface FeedbackPassage {
  readonly vector: Float32Array
  /** Above 0. */
  readonly weight: number
}

/**
 * Moves a query vector toward the best passages: query + beta × the weighted mean of their vectors, scaled to
 * length 1. All passages must be visible to the caller. Otherwise, hidden text would influence the results.
 *
 * @see Rocchio, "Relevance feedback in information retrieval", 1971
 */
export function feedbackQuery(
  query: Float32Array,
  passages: readonly FeedbackPassage[],
  beta: number = feedbackWeight,
): Float32Array {
  const total = passages.reduce((sum, { weight }) => sum + weight, 0)
  const movedQuery = Float64Array.from(query)
  for (const { vector, weight } of passages)
    for (let index = 0; index < movedQuery.length; index++)
      movedQuery[index]! += ((beta * weight) / total) * vector[index]!
  return unitVector(movedQuery)
}
