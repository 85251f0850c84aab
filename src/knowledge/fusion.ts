import { unitVector } from '../base/unit-vector.ts'

/** Number of best passages that a query is moved towards. */
export const feedbackPassages = 3
const feedbackWeight = 0.5
/** Added to a rank before its reciprocal is taken. */
const rankOffset = 1

/** A record with its score, which is finite, and can only be compared within its list. */
export interface RankedRecord<Id extends string | number = string> {
  record: Id
  score: number
}

/** A record of a fused ranking. */
export interface FusedRecord<Id extends string | number = number> extends RankedRecord<Id> {
  /** Lexical score, scaled to 0..1; 0 if the lexical list lacks the record. */
  lexical: number
}

/** Two rankings of one collection to fuse. Each list contains a record at most once. */
export interface RankedLists<Id extends string | number = number> {
  readonly vector: readonly RankedRecord<Id>[]
  readonly lexical: readonly RankedRecord<Id>[]
  /** Weight of the lexical list: 0 for vectors only, 1 for words only. */
  readonly lexicalWeight: number
  /** Requested length of each list; a list of this length may be incomplete. */
  readonly pool: number
}

/** Lists with the name of their vector space. Similarities of the same scale can be compared. */
export type ScaledLists<Id extends string | number = number> = RankedLists<Id> & { readonly scale: string }

/** Fuses two rankings into one, as {@link fuseEach} does. */
export function fuseLists<Id extends string | number>(lists: RankedLists<Id>): FusedRecord<Id>[] {
  return fuseEach([{ ...lists, scale: '' }])[0]!
}

/**
 * Fuses several pairs of rankings, each separately, into comparable scores from 0 to 1: (1 - w) × vector
 * score + w × lexical score. A record that is missing in a list has the score 0 there. The result is sorted
 * best first; of equal scores, the higher lexical score comes first, then the lower record. So from w = 0.5
 * on, a record that is the only one in all lexical lists comes first for any vector scores.
 *
 * Scores are scaled linearly: the best of all to 1, and a floor to 0. Lexical scores are scaled over all
 * lists, vector scores over the lists of the same scale. Scores of 0 or less become 0. The floor is:
 *
 * - for vectors, the lowest score, but never below 0, as models differ in the similarity of unrelated texts;
 * - for words, 0, which is the score of all records that are not listed. A list of full length lacks records
 *   with a positive score, so then the floor is the lowest score of these lists.
 */
export function fuseEach<Id extends string | number>(
  several: readonly ScaledLists<Id>[],
): FusedRecord<Id>[][] {
  const ofWords = scalerFor(
    several.flatMap(({ lexical }) => lexical),
    several.flatMap(({ lexical, pool }) => (lexical.length < pool ? [] : lexical)),
  )
  return several.map(({ vector, lexical, lexicalWeight, scale }) => {
    const alike = several.filter(other => other.scale === scale).flatMap(other => other.vector)
    const byVector = scoresOf(vector, scalerFor(alike, alike))
    const byWords = scoresOf(lexical, ofWords)
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
 * @param atFloor  its lowest score is the floor, unless negative; if empty, the floor is 0
 */
function scalerFor(all: readonly { score: number }[], atFloor: readonly { score: number }[]): Scaler {
  const most = all.reduce((most, { score }) => Math.max(most, score), 0)
  const least = atFloor.reduce((least, { score }) => Math.min(least, score), Number.POSITIVE_INFINITY)
  const floor = atFloor.length === 0 ? 0 : Math.max(0, least)
  return score => {
    if (score <= 0) return 0
    return score >= most ? 1 : Math.max(0, (score - floor) / (most - floor))
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
 * + share / (1 + lexical rank). The scores keep their positions, so that they stay comparable with other
 * rankings.
 *
 * @param lexical  best first; records that are not in the ranking are ignored
 * @param share    weight of the lexical ranks, 0 to 1
 * @see Cormack, Clarke, Büttcher, "Reciprocal rank fusion outperforms Condorcet", SIGIR 2009
 */
export function rerank<Id extends string | number, S extends RankedRecord<Id>>(
  ranked: readonly S[],
  lexical: readonly RankedRecord<Id>[],
  share: number,
): S[] {
  const records = new Set(ranked.map(({ record }) => record))
  const found = lexical.filter(({ record }) => records.has(record))
  const lexicalRanks = new Map(found.map(({ record }, at) => [record, at + 1]))
  return ranked
    .map((hit, at) => {
      const lexicalRank = lexicalRanks.get(hit.record) ?? Number.POSITIVE_INFINITY
      return { hit, worth: (1 - share) / (rankOffset + at + 1) + share / (rankOffset + lexicalRank) }
    })
    .sort((a, b) => b.worth - a.worth)
    .map(({ hit }, place) => ({ ...hit, score: ranked[place]!.score }))
}

/** The vector of a found passage, and its weight. */
export interface FeedbackPassage {
  readonly vector: Float32Array
  /** Above 0. */
  readonly weight: number
}

/**
 * Moves a query towards its best passages: query + beta × the weighted mean of their vectors, scaled to
 * length 1. All passages must be visible to the caller; otherwise hidden text would influence the results.
 *
 * @see Rocchio, "Relevance feedback in information retrieval", 1971
 */
export function feedbackQuery(
  query: Float32Array,
  passages: readonly FeedbackPassage[],
  beta: number = feedbackWeight,
): Float32Array {
  const total = passages.reduce((sum, { weight }) => sum + weight, 0)
  const moved = Float64Array.from(query)
  for (const { vector, weight } of passages)
    for (let at = 0; at < moved.length; at++) moved[at]! += ((beta * weight) / total) * vector[at]!
  return unitVector(moved)
}
