import { z } from 'zod'
import { boundedText, filter } from './fields.ts'
import { limits } from './limits.ts'
import { ingestedAtField } from './payload-keys.ts'

const Recency = z
  .object({
    halfLifeDays: z.number().min(limits.halfLifeDaysMin).max(limits.halfLifeDaysMax).meta({
      description: 'age in days at which the effect of the boost is half of that on a new document',
    }),
    field: boundedText(limits.nameChars).default(ingestedAtField).meta({
      description:
        '`ingestedAt` for the time of the last ingest, or a metadata field with a date: ISO 8601, or a year',
    }),
  })
  .meta({ id: 'Recency' })

/** A change of the scores of some candidates. */
const SearchBoost = z
  .object({
    filter: filter.optional().meta({
      description: `condition on passages whose score is multiplied by \`factor\`; the filters of all boosts have at most ${limits.boostNodes} nodes together`,
    }),
    recency: Recency.optional().meta({
      description:
        'boosts new documents: the score is multiplied by `factor` at age 0, and by a number closer to 1 the older the document is',
    }),
    factor: z.number().min(limits.boostFactorMin).max(limits.boostFactorMax).meta({
      description: 'factor of the score: above 1 to raise it, below 1 to lower it',
    }),
  })
  .refine(
    boost => (boost.filter === undefined) !== (boost.recency === undefined),
    'send exactly one of filter and recency',
  )
  .meta({ id: 'SearchBoost' })
export type SearchBoost = z.output<typeof SearchBoost>

/** Fields of a search request that change its results after ranking. */
export const shapingFields = {
  diversity: z.number().min(0).max(1).optional().meta({
    description:
      'how much results that resemble earlier results are moved down, from 0 (by default, not at all) to 1 (maximal marginal relevance, with 1 - `diversity` as lambda)',
  }),
  groupBy: z.enum(['document']).optional().meta({
    description: '`document` to return at most `perGroup` passages of each document',
  }),
  perGroup: z.int().min(1).max(limits.perGroupMax).optional().meta({
    description: 'maximum number of passages of a document; 1 by default; requires `groupBy`',
  }),
  neighbors: z
    .int()
    .min(0)
    .max(limits.neighborsMax)
    .optional()
    .meta({
      description: `number of chunks before and after a result that are joined with it into one passage; 0 by default. Results among these chunks become part of the passage of the better one. A passage has at most ${limits.joinedTextChars} characters, unless its best chunk is longer`,
    }),
  boosts: z.array(SearchBoost).max(limits.boosts).optional().meta({
    description: 'changes of scores, all of which apply, after reranking',
  }),
}

/** Change of the rank of a hit by a stage. */
const rankChange = {
  from: z.int().min(1).meta({ description: 'rank before this stage' }),
  to: z.int().min(1).meta({ description: 'rank after this stage' }),
}

/** Fields of an explanation. Each is present only if the request uses the stage. */
export const explainedShaping = {
  boost: z
    .object({
      factor: z.number().meta({ description: 'product of the factors of all boosts' }),
      ...rankChange,
    })
    .optional()
    .meta({ description: 'change by boosts' }),
  diversity: z
    .object({
      similarity: z.number().min(0).max(1).nullable().meta({
        description:
          'highest similarity with a result that comes earlier; null for a hit that was not compared',
      }),
      ...rankChange,
    })
    .optional()
    .meta({ description: 'change by diversity' }),
  group: z
    .object({
      omitted: z.int().min(0).meta({
        description: 'number of other candidates of the same document that were omitted',
      }),
      ...rankChange,
    })
    .optional()
    .meta({ description: 'change by grouping' }),
  neighbors: z
    .object({
      merged: z.int().min(0).meta({
        description: 'number of other candidates that became part of the passage',
      }),
      ...rankChange,
    })
    .optional()
    .meta({ description: 'change by joining neighboring chunks' }),
}

const ExplainedShaping = z.object(explainedShaping)
export type ExplainedShaping = z.output<typeof ExplainedShaping>
