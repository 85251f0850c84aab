import { unitVector } from '../base/unit-vector.ts'

/** The query vector is moved toward this number of best passages. */
export const feedbackPassages = 3
const feedbackWeight = 0.5
/** Constant of reciprocal rank fusion. It is added to a rank before its reciprocal is taken. */
const rankOffset = 1

/** A record with its score. Scores are finite. Only scores of the same list can be compared. */
export interface RankedRecord<Id extends string | number = string> {
  record: Id
  score: number
}

/** A record of a fused ranking. */
export interface FusedRecord<Id extends string | number = number> extends RankedRecord<Id> {
  /** Lexical score, scaled to 0..1; 0 if the record is not in the lexical list. */
  lexical: number
}

/** Two rankings of the same collection that are to be fused. A record occurs at most once in each list. */
export interface RankedLists<Id extends string | number = number> {
  readonly vector: readonly RankedRecord<Id>[]
  readonly lexical: readonly RankedRecord<Id>[]
  /** Weight of the lexical list: 0 for vectors only, 1 for words only. */
  readonly lexicalWeight: number
  /** Requested maximum length of each list. A list of this length may be incomplete. */
  readonly pool: number
}

/** Rankings with an identifier of their similarity scale. Similarities of the same scale can be compared. */
export type ScaledLists<Id extends string | number = number> = RankedLists<Id> & { readonly scale: string }

/** Fuses two rankings into one, as {@link fuseEach} does. */
export function fuseLists<Id extends string | number>(lists: RankedLists<Id>): FusedRecord<Id>[] {
  return fuseEach([{ ...lists, scale: '' }])[0]!
}

/**
 * Fuses each pair of rankings separately. The resulting scores, from 0 to 1, can be compared between pairs: (1 - w) ×
 * vector score + w × lexical score, where w is `lexicalWeight`. A record that is not in a list has the score 0 in that
 * list. Results are sorted by score and then lexical score, both descending, then by record. So if w is at least 0.5, a
 * record that is the only one in the lexical lists always comes first.
 *
 * Before that, scores are scaled linearly: the best score becomes 1, and scores at or below a floor become 0. Lexical
 * scores are scaled together over all pairs, and vector scores over the pairs of the same scale. The floor is:
 *
 * - for vectors, the lowest score, but at least 0, because models differ in the similarity of unrelated texts;
 * - for words, 0, which is the score of records that are not listed. However, a list of full length may omit records
 *   with a positive score. If there are such lists, the floor is the lowest score in them.
 */
export function fuseEach<Id extends string | number>(pairs: readonly ScaledLists<Id>[]): FusedRecord<Id>[][] {
  const lexicalScaler = scalerFor(
    pairs.flatMap(({ lexical }) => lexical),
    pairs.flatMap(({ lexical, pool }) => (lexical.length < pool ? [] : lexical)),
  )
  return pairs.map(({ vector, lexical, lexicalWeight, scale }) => {
    const sameScale = pairs.filter(other => other.scale === scale).flatMap(other => other.vector)
    const byVector = scoresOf(vector, scalerFor(sameScale, sameScale))
    const byWords = scoresOf(lexical, lexicalScaler)
    const records = new Set([...byVector.keys(), ...byWords.keys()])
    return Array.from(records, record => {
      const words = byWords.get(record) ?? 0
      const score = (1 - lexicalWeight) * (byVector.get(record) ?? 0) + lexicalWeight * words
      return { record, score, lexical: words }
    }).sort((a, b) => b.score - a.score || b.lexical - a.lexical || (a.record < b.record ? -1 : 1))
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

function scoresOf<Id extends string | number>(
  list: readonly RankedRecord<Id>[],
  scaler: Scaler,
): Map<Id, number> {
  return new Map(list.map(({ record, score }) => [record, scaler(score)]))
}

/**
 * Reranks a ranking by reciprocal rank fusion with the lexical ranks of its records: (1 - share) / (1 + rank)
 * + share / (1 + lexical rank). The score at each position stays the same: a record that moves gets the score of its
 * new position. So the scores can still be compared with those of other rankings.
 *
 * @param lexical  lexical ranking, best first; records that are not in `ranked` are ignored
 * @param share    weight of the lexical ranks, 0 to 1
 * @see Cormack, Clarke, Büttcher, "Reciprocal rank fusion outperforms Condorcet", SIGIR 2009
 */
export function rerank<Id extends string | number, S extends RankedRecord<Id>>(
  ranked: readonly S[],
  lexical: readonly RankedRecord<Id>[],
  share: number,
): S[] {
  const records = new Set(ranked.map(({ record }) => record))
  const ranking = lexical.filter(({ record }) => records.has(record))
  const lexicalRanks = new Map(ranking.map(({ record }, index) => [record, index + 1]))
  return ranked
    .map((hit, index) => {
      const lexicalRank = lexicalRanks.get(hit.record) ?? Number.POSITIVE_INFINITY
      return { hit, fusedScore: (1 - share) / (rankOffset + index + 1) + share / (rankOffset + lexicalRank) }
    })
    .sort((a, b) => b.fusedScore - a.fusedScore)
    .map(({ hit }, index) => ({ ...hit, score: ranked[index]!.score }))
}

/** The vector of a passage in the result, and the weight of the passage. */
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
