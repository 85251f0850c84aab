import * as Flags from '@oclif/core/flags'
import { isObject } from '../../base/is-object.ts'
import { parseJson } from '../../base/parse-json.ts'
import { UsageError } from '../errors.ts'
import { type Condition, parseWhere } from './parse-where.ts'

/** Flags `--filter` and `--where` of commands that accept a condition. */
export const conditionFlags = {
  filter: Flags.string({ summary: 'metadata filter, such as {"lang":"en"}', helpValue: 'JSON' }),
  where: Flags.string({
    multiple: true,
    multipleNonGreedy: true,
    summary:
      "metadata condition, such as 'year >= 2024 and tag in (a, b)'; repeat a key to accept any of several values",
    helpValue: 'CONDITION',
  }),
}

/**
 * Returns the condition that the flags express; undefined if there are no flags.
 *
 * @throws UsageError  when `--filter` is not a JSON object, or `--where` is not a condition
 */
export function parseCondition(flags: { filter?: string; where?: readonly string[] }): Condition | undefined {
  const conditions = [
    flags.filter === undefined ? [] : parseFilter(flags.filter),
    ...parseConditions(flags.where ?? []),
  ].flat()
  return conditions.length < 2 ? conditions[0] : { $and: conditions }
}

/** @throws UsageError  when the text is not a JSON object */
function parseFilter(text: string): Condition {
  const value = parseJson(text)
  if (isObject(value)) return value
  throw new UsageError(`--filter is not a JSON object: ${text}`, [`--filter '{"lang":"en"}'`])
}

/** Parses conditions. Several values for the same key are alternatives; otherwise all conditions must be true. */
function parseConditions(texts: readonly string[]): Condition[] {
  const values = new Map<string, unknown[]>()
  const others: Condition[] = []
  for (const condition of texts.map(text => parseWhere(text))) {
    const [[key, value]] = Object.entries(condition) as [[string, unknown]]
    const accepted = acceptedValues(key, value)
    if (accepted) values.set(key, [...(values.get(key) ?? []), ...accepted])
    else others.push(condition)
  }
  const equalities = [...values].map(([key, list]) => ({
    [key]: list.length === 1 ? list[0] : { $in: list },
  }))
  return [...equalities, ...others]
}

/** Returns the values that a condition on one key accepts; undefined for other conditions. */
function acceptedValues(key: string, value: unknown): unknown[] | undefined {
  if (key === '$and' || key === '$or' || key === '$not') return undefined
  if (typeof value !== 'object' || value === null) return [value]
  return '$in' in value ? (value.$in as unknown[]) : undefined
}
