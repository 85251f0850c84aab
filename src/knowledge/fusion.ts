import { unitVector } from '../base/unit-vector.ts'

/** Best passages that a query is drawn towards. */
export const feedbackPassages = 3
const feedbackWeight = 0.5

/** A record and how well it suits a query; finite, and compared within one list only. */
export interface Scored<Id extends string | number = string> {
  record: Id
  score: number
}

/** The scores stretched over 0 to 1; scores that are all the same are all 1, for being found counts. */
export function minMax(scores: readonly number[]): number[] {
  const { min, max } = scores.reduce(
    ({ min, max }, score) => ({ min: Math.min(min, score), max: Math.max(max, score) }),
    { min: Number.POSITIVE_INFINITY, max: Number.NEGATIVE_INFINITY },
  )
  return scores.map(score => (max > min ? (score - min) / (max - min) : 1))
}

function stretched<Id extends string | number>(list: readonly Scored<Id>[]): Map<Id, number> {
  const scores = minMax(list.map(({ score }) => score))
  return new Map(list.map(({ record }, at) => [record, scores[at]!]))
}

/**
 * One ranking out of two: (1 - w) × vector score + w × lexical score, each stretched over 0 to 1 within its list
 * and 0 for a record that the list lacks; a list has a record once at most. Best first; equal scores stand in the
 * order of their records.
 *
 * @param lexicalWeight  w, 0 to 1
 */
export function fuse<Id extends string | number>(
  vector: readonly Scored<Id>[],
  lexical: readonly Scored<Id>[],
  lexicalWeight: number,
): Scored<Id>[] {
  const byVector = stretched(vector)
  const byLexical = stretched(lexical)
  const records = new Set([...byVector.keys(), ...byLexical.keys()])
  return Array.from(records, record => ({
    record,
    score: (1 - lexicalWeight) * (byVector.get(record) ?? 0) + lexicalWeight * (byLexical.get(record) ?? 0),
  })).sort((a, b) => b.score - a.score || (a.record < b.record ? -1 : 1))
}

/**
 * The query drawn towards its best passages: query + beta × the mean of the first three of `top`, at length 1.
 * All of `top` must be visible to the caller, or hidden text would shape what they find.
 *
 * @see Rocchio, "Relevance feedback in information retrieval", 1971
 */
export function feedbackQuery(
  query: Float32Array,
  top: readonly Float32Array[],
  beta: number = feedbackWeight,
): Float32Array {
  const used = top.slice(0, feedbackPassages)
  const drawn = Float64Array.from(query)
  for (const vector of used)
    for (let at = 0; at < drawn.length; at++) drawn[at]! += (beta / used.length) * vector[at]!
  return unitVector(drawn)
}
