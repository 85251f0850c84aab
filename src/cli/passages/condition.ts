import * as Flags from '@oclif/core/flags'
import { UsageError } from '../faults.ts'

/** `--filter` and `--where` of everything that a condition narrows. */
export const conditionFlags = {
  filter: Flags.string({ summary: 'condition on metadata, such as {"lang":"en"}', helpValue: 'JSON' }),
  where: Flags.string({
    multiple: true,
    multipleNonGreedy: true,
    summary: 'the same as KEY=VALUE; given several times, all hold, and of one key any',
    helpValue: 'KEY=VALUE',
  }),
}

type Condition = Record<string, unknown>

/**
 * The condition that flags make; undefined where none is given.
 *
 * @throws UsageError  a flag is not a JSON object, or no pair
 */
export function conditionOf(flags: { filter?: string; where?: readonly string[] }): Condition | undefined {
  const given = [flags.filter === undefined ? [] : parsed(flags.filter), ...wheres(flags.where ?? [])].flat()
  return given.length < 2 ? given[0] : { $and: given }
}

/** @throws UsageError  the text is not a JSON object */
function parsed(text: string): Condition {
  const value = jsonIn(text)
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Condition
  throw new UsageError(`--filter is not a JSON object: ${text}`, [`--filter '{"lang":"en"}'`])
}

/** Undefined for what is no JSON. */
function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function wheres(pairs: readonly string[]): Condition[] {
  const values = new Map<string, (string | number | boolean)[]>()
  for (const pair of pairs) {
    const at = pair.indexOf('=')
    if (at < 1) throw new UsageError(`--where "${pair}" has no KEY=VALUE`, ['--where lang=en'])
    const key = pair.slice(0, at)
    values.set(key, [...(values.get(key) ?? []), ...readings(pair.slice(at + 1))])
  }
  return [...values].map(([key, all]) => ({ [key]: all.length === 1 ? all[0] : { $in: all } }))
}

/** A value as it is typed does not say whether the metadata has it as a number or as text. */
function readings(text: string): (string | number | boolean)[] {
  if (text === 'true' || text === 'false') return [text === 'true', text]
  const isNumber = /^-?\d+(\.\d+)?$/.test(text) && Number.isFinite(Number(text))
  return isNumber ? [Number(text), text] : [text]
}
