import * as Flags from '@oclif/core/flags'
import { UsageError } from '../errors.ts'

/** Flags `--filter` and `--where` of commands that accept a condition. */
export const conditionFlags = {
  filter: Flags.string({ summary: 'metadata filter, such as {"lang":"en"}', helpValue: 'JSON' }),
  where: Flags.string({
    multiple: true,
    multipleNonGreedy: true,
    summary: 'metadata field that must have this value; repeat a key to accept any of several values',
    helpValue: 'KEY=VALUE',
  }),
}

type Condition = Record<string, unknown>

/**
 * Returns the condition that the flags express; undefined if there are no flags.
 *
 * @throws UsageError  when `--filter` is not a JSON object, or `--where` is not `KEY=VALUE`
 */
export function parseCondition(flags: { filter?: string; where?: readonly string[] }): Condition | undefined {
  const conditions = [
    flags.filter === undefined ? [] : parseFilter(flags.filter),
    ...parsePairs(flags.where ?? []),
  ].flat()
  return conditions.length < 2 ? conditions[0] : { $and: conditions }
}

/** @throws UsageError  when the text is not a JSON object */
function parseFilter(text: string): Condition {
  const value = parseJsonOrUndefined(text)
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Condition
  throw new UsageError(`--filter is not a JSON object: ${text}`, [`--filter '{"lang":"en"}'`])
}

/** Returns undefined if the text is not JSON. */
function parseJsonOrUndefined(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function parsePairs(pairs: readonly string[]): Condition[] {
  const values = new Map<string, (string | number | boolean)[]>()
  for (const pair of pairs) {
    const separatorIndex = pair.indexOf('=')
    if (separatorIndex < 1) throw new UsageError(`--where "${pair}" is not KEY=VALUE`, ['--where lang=en'])
    const key = pair.slice(0, separatorIndex)
    values.set(key, [...(values.get(key) ?? []), ...possibleValues(pair.slice(separatorIndex + 1))])
  }
  return [...values].map(([key, list]) => ({ [key]: list.length === 1 ? list[0] : { $in: list } }))
}

/** Returns the value as a string and, if possible, as a number or boolean, because metadata can contain either. */
function possibleValues(text: string): (string | number | boolean)[] {
  if (text === 'true' || text === 'false') return [text === 'true', text]
  const isNumber = /^-?\d+(\.\d+)?$/.test(text) && Number.isFinite(Number(text))
  return isNumber ? [Number(text), text] : [text]
}
