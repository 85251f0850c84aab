import * as Flags from '@oclif/core/flags'

/** The flag that turns the sentence vectors of a knowledge base on or off. */
export const semanticFlag = Flags.option({
  options: ['on', 'off'] as const,
  summary: 'find passages by meaning, with the built-in sentence model',
})
