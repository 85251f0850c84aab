import * as Flags from '@oclif/core/flags'
import type { SearchRequest } from '../../contract/knowledge.ts'
import { limits } from '../../contract/limits.ts'
import { ingestedAtField } from '../../contract/payload-keys.ts'
import { UsageError } from '../errors.ts'
import { parseDurationSeconds } from '../terminal/duration.ts'
import { parseWhere } from './parse-where.ts'
import { parseShare } from './ranking-options.ts'

const secondsPerDay = 86_400

/** Flags of search commands that change the results after ranking. */
export const shapingFlags = {
  diversity: Flags.custom<number>({ parse: async text => parseShare('--diversity', text) })({
    summary: 'move down results that resemble better ones, from 0 to 1',
    helpValue: 'NUMBER',
  }),
  group: Flags.boolean({ summary: 'show only the best passage of each document' }),
  'per-group': Flags.integer({
    min: 1,
    max: limits.perGroupMax,
    dependsOn: ['group'],
    summary: 'show up to this many passages of each document',
  }),
  neighbors: Flags.integer({
    min: 0,
    max: limits.neighborsMax,
    summary: 'join the chunks before and after each result',
  }),
  boost: Flags.string({
    multiple: true,
    multipleNonGreedy: true,
    summary: "multiply the scores of documents by a factor, such as '2: type = manual'",
    helpValue: 'FACTOR:CONDITION',
  }),
  recency: Flags.string({
    summary: "boost recent documents: a factor and a half-life, such as '2: 30d' or '2: 30d published'",
    helpValue: 'FACTOR:AGE',
  }),
}

/** Values of {@link shapingFlags}. */
export interface ShapingSettings {
  readonly diversity?: number
  readonly group?: boolean
  readonly 'per-group'?: number
  readonly neighbors?: number
  readonly boost?: readonly string[]
  readonly recency?: string
}

/**
 * Returns the fields of a search request for the flags.
 *
 * @throws UsageError  a boost is invalid
 */
export function shapingOptions({
  diversity,
  group,
  'per-group': perGroup,
  neighbors,
  boost = [],
  recency,
}: ShapingSettings): Pick<SearchRequest, 'diversity' | 'groupBy' | 'perGroup' | 'neighbors' | 'boosts'> {
  const boosts = [...boost.map(parseBoost), ...(recency === undefined ? [] : [parseRecency(recency)])]
  return {
    ...(diversity !== undefined && { diversity }),
    ...(group && { groupBy: 'document' }),
    ...(perGroup !== undefined && { perGroup }),
    ...(neighbors !== undefined && { neighbors }),
    ...(boosts.length > 0 && { boosts }),
  }
}

/** Parses a factor and a condition, as of `--where`. */
function parseBoost(text: string) {
  const { factor, rest } = parseFactor('--boost', text, "'2: type = manual'")
  return { factor, filter: parseWhere(rest, { flag: '--boost', prefix: `${factor}: ` }) }
}

/** Parses a factor, a half-life, and the name of a metadata field, which is optional. */
function parseRecency(text: string) {
  const { factor, rest } = parseFactor('--recency', text, "'2: 30d'")
  const [age = '', ...words] = rest.split(/\s+/)
  const seconds = parseDurationSeconds('--recency', age, limits.halfLifeDaysMax * secondsPerDay, [
    `'${factor}: 30d'`,
  ])
  const field = words.length === 0 ? ingestedAtField : words.join(' ')
  return { factor, recency: { halfLifeDays: seconds / secondsPerDay, field } }
}

function parseFactor(flag: string, text: string, example: string): { factor: number; rest: string } {
  const colon = text.indexOf(':')
  const number = text.slice(0, Math.max(0, colon)).trim()
  const factor = number === '' ? Number.NaN : Number(number)
  if (factor >= limits.boostFactorMin && factor <= limits.boostFactorMax)
    return { factor, rest: text.slice(colon + 1).trim() }
  throw new UsageError(
    `${flag} "${text}" does not start with a factor from ${limits.boostFactorMin} to ${limits.boostFactorMax} and a colon`,
    [`${flag} ${example}`],
  )
}
