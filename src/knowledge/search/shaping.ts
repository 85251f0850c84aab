import { WbError } from '../../contract/errors.ts'
import type { SearchRequest } from '../../contract/knowledge.ts'
import { limits } from '../../contract/limits.ts'
import { ingestedAtField } from '../../contract/payload-keys.ts'
import { createMatcher, type FilterMatcher, parseFilter } from '../../storage/filter.ts'

/** The stages of a request that change its results after ranking. */
export interface Shaping {
  readonly boosts: readonly Boost[]
  /** 0 to 1; 0 for none. */
  readonly diversity: number
  /** Maximum number of passages of a document; undefined for no limit. */
  readonly perGroup: number | undefined
  /** Number of chunks to join on each side of a result. */
  readonly neighbors: number
}

/** No stages, which keep the ranking as it is. */
export const noShaping: Shaping = { boosts: [], diversity: 0, perGroup: undefined, neighbors: 0 }

/** A change of scores by a condition, or by the age of a document. `factor` is above 0. */
export type Boost = { readonly factor: number } & (
  | { readonly matches: FilterMatcher }
  | { readonly halfLifeDays: number; readonly field: string }
)

/**
 * Returns the stages of a request; undefined if it has none.
 *
 * @throws validation_error
 */
export function createShaping(
  body: Pick<SearchRequest, 'boosts' | 'diversity' | 'groupBy' | 'perGroup' | 'neighbors'>,
): Shaping | undefined {
  if (body.perGroup !== undefined && body.groupBy === undefined)
    throw new WbError('validation_error', 'perGroup: requires groupBy')
  const count = { nodes: 0, max: limits.boostNodes }
  const boosts = (body.boosts ?? []).map(({ filter, recency, factor }, index) => {
    if (recency) return { factor, ...recency }
    return { factor, matches: createMatcher(parseFilter(filter, `boosts.${index}.filter`, count)) }
  })
  const { diversity = 0, neighbors = 0 } = body
  const perGroup = body.groupBy && (body.perGroup ?? 1)
  const isUsed = boosts.length > 0 || diversity > 0 || neighbors > 0 || perGroup !== undefined
  return isUsed ? { boosts, diversity, perGroup, neighbors } : undefined
}

/** Returns true if a boost depends on the time at which documents were ingested. */
export function needsIngestTimes({ boosts }: Shaping): boolean {
  return boosts.some(boost => 'field' in boost && boost.field === ingestedAtField)
}
