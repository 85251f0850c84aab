import { ingestedAtField } from '../../contract/payload-keys.ts'
import { storedValue } from '../../storage/filter.ts'
import type { ShapedCandidate } from './shaped-candidate.ts'
import type { Boost } from './shaping.ts'

const msPerDay = 86_400_000

/**
 * Multiplies the scores of candidates by their boosts, and sorts them again. A negative score is divided instead, so that a
 * factor above 1 always raises the score.
 *
 * @param now          milliseconds since 1970
 * @param ingestedAtOf  returns the time at which the document of a candidate was ingested; undefined if it is not known
 */
export function applyBoosts(
  candidates: readonly ShapedCandidate[],
  boosts: readonly Boost[],
  now: number,
  ingestedAtOf: (candidate: ShapedCandidate) => string | undefined,
): ShapedCandidate[] {
  if (boosts.length === 0) return [...candidates]
  const strengthOf = (boost: Boost, candidate: ShapedCandidate) => {
    const { payload } = candidate.view
    if ('matches' in boost) return boost.matches(payload) ? 1 : 0
    const { field, halfLifeDays } = boost
    const date = parseDate(field === ingestedAtField ? ingestedAtOf(candidate) : storedValue(payload, field))
    return date === undefined ? 0 : 2 ** (-Math.max(0, now - date) / (halfLifeDays * msPerDay))
  }
  return candidates
    .map((candidate, index) => {
      const factor = boosts.reduce(
        (product, boost) => product * (1 + (boost.factor - 1) * strengthOf(boost, candidate)),
        1,
      )
      const score = candidate.score < 0 ? candidate.score / factor : candidate.score * factor
      return { candidate: { ...candidate, score }, factor, from: index + 1 }
    })
    .sort((a, b) => b.candidate.score - a.candidate.score)
    .map(({ candidate, factor, from }, index) => ({
      ...candidate,
      changes: { ...candidate.changes, boost: { factor, from, to: index + 1 } },
    }))
}

/** Returns the milliseconds since 1970 of an ISO 8601 date or a year, from 1000 to 9999; undefined for other values. */
function parseDate(value: unknown): number | undefined {
  const text = typeof value === 'number' ? String(value) : value
  if (typeof text !== 'string' || !/^\d{4}(?:-\d\d(?:-\d\d(?:T.*)?)?)?$/.test(text)) return undefined
  const date = Date.parse(text)
  return Number.isNaN(date) ? undefined : date
}
