import * as Flags from '@oclif/core/flags'
import { UsageError } from '../errors.ts'

const decimalFlag = (flag: string, max: number) =>
  Flags.custom<number>({
    helpValue: 'NUMBER',
    async parse(text) {
      const value = Number(text)
      if (text.trim() !== '' && value >= 0 && value <= max) return value
      throw new UsageError(`--${flag} ${text} is not a number from 0 to ${max}`)
    },
  })

/** Sampling flags of agents and LLM services. */
export const samplingFlags = {
  temperature: decimalFlag(
    'temperature',
    2,
  )({ summary: 'randomness of answers, from 0 to 2 [provider default]' }),
  'top-p': decimalFlag(
    'top-p',
    1,
  )({
    summary:
      'nucleus sampling: total probability of the tokens to choose from, above 0 and up to 1 [provider default]',
  }),
  'reasoning-effort': Flags.string({
    summary: 'how much a reasoning model thinks: low, medium, high, … [provider default]',
    helpValue: 'LEVEL',
  }),
  stop: Flags.string({
    multiple: true,
    summary: 'stop sequence: text at which an answer ends; can be repeated [none]',
    helpValue: 'TEXT',
  }),
}

/** Converts the flags to API fields. The field of a flag that is not set is undefined. */
export function samplingFields(flags: {
  readonly temperature?: number | undefined
  readonly 'top-p'?: number | undefined
  readonly 'reasoning-effort'?: string | undefined
  readonly stop?: string[] | undefined
}) {
  return {
    temperature: flags.temperature,
    topP: flags['top-p'],
    reasoningEffort: flags['reasoning-effort'],
    stop: flags.stop,
  }
}

/** Sampling fields of an agent that uses the settings of its LLM service. */
export const defaultSampling = { temperature: null, topP: null, reasoningEffort: null, stop: null }
