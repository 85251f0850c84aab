import { unitVector } from '../base/unit-vector.ts'

/** Best passages that a query is moved towards. */
export const feedbackPassages = 3
const feedbackWeight = 0.5
/** Added to a rank before its reciprocal is taken. */
const rankOffset = 1

/** A record and how well it suits a query; finite, and compared within one list only. */
export interface Scored<Id extends string | number = string> {
  record: Id
  score: number
}

/** A record of a fused ranking. */
export interface Fused<Id extends string | number = number> extends Scored<Id> {
  /** Its lexical score, scaled to 0..1; 0 where the lexical list lacks it. */
  lexical: number
}

/** The two rankings of one collection that are fused. A list has a record at most once. */
export interface Lists<Id extends string | number = number> {
  readonly vector: readonly Scored<Id>[]
  readonly lexical: readonly Scored<Id>[]
  /** 0 is vectors alone, 1 words alone. */
  readonly lexicalWeight: number
  /** Candidates that each list was asked for: a list of this length was cut. */
  readonly pool: number
}

/** Lists, and a name for the space of their vectors: similarities of one scale can be compared. */
export type ListsOfScale<Id extends string | number = number> = Lists<Id> & { readonly scale: string }

/** Fuses two rankings into one, as {@link fuseEach} does. */
export function fuse<Id extends string | number>(lists: Lists<Id>): Fused<Id>[] {
  return fuseEach([{ ...lists, scale: '' }])[0]!
}

/**
 * Fuses several pairs of rankings, each for itself, into scores from 0 to 1 that can be compared:
 * (1 - w) × vector score + w × lexical score, where a record that a list lacks has 0. Best first. Of equal scores, the
 * higher lexical score comes first, then the lower record. So from w = 0.5 on, the only record of all lexical lists comes
 * first, whatever the vectors say.
 *
 * Scores are scaled linearly, the best of all to 1 and a floor to 0; lexical scores over all lists, vector scores over
 * those of one scale. What is 0 or less stays 0, however little the others have. The floor is:
 *
 * - for vectors the lowest score, as models differ in the similarity of unrelated texts, but never below 0;
 * - for words 0, which is the score of every record that is not listed. A list that was cut lacks records with a score,
 *   so then it is the lowest score of the lists that were cut.
 */
export function fuseEach<Id extends string | number>(several: readonly ListsOfScale<Id>[]): Fused<Id>[][] {
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
 * Maps the best of `all` to 1 and the floor to 0.
 *
 * @param atFloor  the lowest of these is the floor, unless it is negative; 0 where there are none
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

function scoresOf<Id extends string | number>(list: readonly Scored<Id>[], scaler: Scaler): Map<Id, number> {
  return new Map(list.map(({ record, score }) => [record, scaler(score)]))
}

/**
 * Ranks the records of a ranking anew by reciprocal rank fusion with the lexical ranks among them:
 * (1 - share) / (1 + rank) + share / (1 + lexical rank). Scores stay with the places, so that they can be compared with
 * those of other rankings as before.
 *
 * @param lexical  best first; records that the ranking lacks are passed over
 * @param share    weight of the lexical ranks, 0 to 1
 * @see Cormack, Clarke, Büttcher, "Reciprocal rank fusion outperforms Condorcet", SIGIR 2009
 */
export function rerank<Id extends string | number, S extends Scored<Id>>(
  ranked: readonly S[],
  lexical: readonly Scored<Id>[],
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

/** The vector of a passage that a search found, and how much it counts. */
export interface Feedback {
  readonly vector: Float32Array
  /** Above 0. */
  readonly weight: number
}

/**
 * Moves a query towards its best passages: query + beta × the weighted mean of their vectors, at length 1.
 * All passages must be visible to the caller, or hidden text would shape what they find.
 *
 * @see Rocchio, "Relevance feedback in information retrieval", 1971
 */
export function feedbackQuery(
  query: Float32Array,
  passages: readonly Feedback[],
  beta: number = feedbackWeight,
): Float32Array {
  const total = passages.reduce((sum, { weight }) => sum + weight, 0)
  const moved = Float64Array.from(query)
  for (const { vector, weight } of passages)
    for (let at = 0; at < moved.length; at++) moved[at]! += ((beta * weight) / total) * vector[at]!
  return unitVector(moved)
}
