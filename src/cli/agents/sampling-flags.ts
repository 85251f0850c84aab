import * as Flags from '@oclif/core/flags'
import { UsageError } from '../errors.ts'

const decimal = (flag: string, max: number) =>
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
  temperature: decimal('temperature', 2)({ summary: "randomness of answers, from 0 to 2 [the provider's]" }),
  'top-p': decimal(
    'top-p',
    1,
  )({ summary: "share of likely tokens to consider, from 0 to 1 [the provider's]" }),
  'reasoning-effort': Flags.string({
    summary: "how long a reasoning model may think: low, medium, high [the provider's]",
    helpValue: 'WORD',
  }),
  stop: Flags.string({
    multiple: true,
    summary: 'text that ends an answer; can be repeated [none]',
    helpValue: 'TEXT',
  }),
}

/** Returns the fields that the flags set; the others are undefined. */
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

/** Fields of an agent that uses the settings of its LLM service. */
export const noSampling = { temperature: null, topP: null, reasoningEffort: null, stop: null }
