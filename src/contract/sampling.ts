import { z } from 'zod'
import { limits } from './limits.ts'

/** Sampling settings of an LLM service or an agent. The settings of the agent take precedence. */
export const sampling = {
  temperature: z.number().min(0).max(2).nullable().meta({
    description: 'randomness of the answer, from 0 to 2; null uses the default of the provider',
  }),
  topP: z.number().positive().max(1).nullable().meta({
    description:
      'probability mass of the tokens to choose from (nucleus sampling), up to 1; null uses the default of the provider',
  }),
  reasoningEffort: z
    .string()
    .regex(/^[a-z]{1,20}$/, 'must be a value that the provider accepts, such as low, medium or high')
    .nullable()
    .meta({
      description:
        'how much a reasoning model reasons before it answers; null uses the default of the provider',
    }),
  stop: z
    .array(z.string().min(1).max(limits.stopChars))
    .min(1)
    .max(limits.stopSequences)
    .nullable()
    .meta({ description: 'strings at which the model stops writing; null if there are none' }),
}

/** Like {@link sampling}, for stored records. Records from earlier releases do not have these fields. */
export const optionalSampling = {
  temperature: sampling.temperature.optional(),
  topP: sampling.topP.optional(),
  reasoningEffort: sampling.reasoningEffort.optional(),
  stop: sampling.stop.optional(),
}
