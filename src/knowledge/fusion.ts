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

/** What fusion makes one ranking of; a list has a record once at most. */
export interface Lists<Id extends string | number = number> {
  readonly vector: readonly Scored<Id>[]
  readonly lexical: readonly Scored<Id>[]
  /** 0 is vector alone, 1 words alone. */
  readonly lexicalWeight: number
}

/**
 * One ranking out of two: (1 - w) × vector score + w × lexical score, each stretched over 0 to 1 within its list
 * and 0 for a record that the list lacks. Best first; equal scores stand in the order of their records.
 */
export function fuse<Id extends string | number>(lists: Lists<Id>): Scored<Id>[] {
  return fuseEach([{ ...lists, scale: '' }])[0]!
}

/**
 * The same for several at once, each for itself, so that their scores can be compared: lexical scores are stretched
 * over all of them, vector scores over those of one `scale`.
 */
export function fuseEach<Id extends string | number>(
  several: readonly (Lists<Id> & { scale: string })[],
): Scored<Id>[][] {
  const byVector = stretchedEach(
    several.map(({ vector }) => vector),
    several.map(({ scale }) => scale),
  )
  const byLexical = stretchedEach(
    several.map(({ lexical }) => lexical),
    several.map(() => ''),
  )
  return several.map(({ lexicalWeight }, at) => {
    const [vector, lexical] = [byVector[at]!, byLexical[at]!]
    const records = new Set([...vector.keys(), ...lexical.keys()])
    return Array.from(records, record => ({
      record,
      score: (1 - lexicalWeight) * (vector.get(record) ?? 0) + lexicalWeight * (lexical.get(record) ?? 0),
    })).sort((a, b) => b.score - a.score || (a.record < b.record ? -1 : 1))
  })
}

/** Scores by record, list by list, stretched over all lists of one scale. */
function stretchedEach<Id extends string | number>(
  lists: readonly (readonly Scored<Id>[])[],
  scales: readonly string[],
): Map<Id, number>[] {
  const stretched = lists.map(() => new Map<Id, number>())
  for (const scale of new Set(scales)) {
    const all = lists.flatMap((list, at) =>
      scales[at] === scale ? list.map(({ record, score }) => ({ at, record, score })) : [],
    )
    const scores = minMax(all.map(({ score }) => score))
    for (const [index, { at, record }] of all.entries()) stretched[at]!.set(record, scores[index]!)
  }
  return stretched
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
