import { z } from 'zod'
import { isoTimestamp, timestampInput } from './fields.ts'
import { limits } from './limits.ts'
import { limitParameter } from './page.ts'

/** Figures about the results of a search. */
const resultFigures = {
  hits: z.int().min(0).meta({ description: 'number of passages that the search returned' }),
  coverage: z.number().min(0).max(1).nullable().meta({
    description:
      'highest share of the words in the question that one of the best passages contains; null if the search did not compute it',
  }),
  similarity: z.number().nullable().meta({
    description:
      'highest similarity of a passage by the built-in sentence model, at most 1; null if the search did not use the model',
  }),
}

/** A search in the query log of a knowledge base. */
export const LoggedSearch = z
  .object({
    workspaceId: z.uuid(),
    knowledgeBaseId: z.uuid(),
    searchId: z.uuid(),
    at: isoTimestamp.meta({ description: 'time at which the search ended' }),
    question: z.string().meta({ description: `first ${limits.loggedQuestionChars} characters of the text` }),
    caller: z.string().nullable().meta({
      description: 'principal or subject that searched; null for an anonymous caller',
    }),
    mode: z.string().meta({ description: 'how the passages were ranked' }),
    reranked: z.boolean(),
    hits: z.int().min(0).meta({ description: 'number of passages from this knowledge base' }),
    score: z
      .number()
      .nullable()
      .meta({ description: 'score of the first of these passages; null if there are none' }),
    result: z.object(resultFigures).nullable().meta({
      description:
        'figures about all knowledge bases that were searched together; null if there were several, and row-level access was on',
    }),
    durationMs: z.number().min(0),
  })
  .meta({ id: 'LoggedSearch' })
export type LoggedSearch = z.output<typeof LoggedSearch>

const questionFields = {
  question: z.string().meta({ description: 'latest spelling of the question' }),
  searches: z.int().min(1).meta({ description: 'number of searches with this question' }),
  lastAt: isoTimestamp.meta({ description: 'time of the last of these searches' }),
}

/** Summary of the searches of a knowledge base during a period. */
export const QueryInsights = z
  .object({
    workspaceId: z.uuid(),
    knowledgeBaseId: z.uuid(),
    queryLog: z.boolean().meta({ description: 'true if searches are being recorded now' }),
    since: isoTimestamp.meta({ description: 'start of the period' }),
    until: isoTimestamp.meta({ description: 'end of the period: the time of the request' }),
    complete: z.boolean().meta({
      description: `false if the period has more than ${limits.loggedSearchesRead} searches, so that only the latest ones were read`,
    }),
    ownOnly: z.boolean().meta({
      description:
        'true if only your own searches were read, because row-level access is on and you may not manage access',
    }),
    searches: z.int().min(0).meta({ description: 'number of searches' }),
    callers: z.int().min(0).meta({ description: 'number of distinct callers, without anonymous ones' }),
    withoutGoodResults: z.int().min(0).meta({ description: 'number of searches without good results' }),
    duration: z
      .object({
        p50Ms: z.number().min(0).meta({ description: 'median time in milliseconds' }),
        p95Ms: z.number().min(0).meta({ description: '95th percentile of the time in milliseconds' }),
        maxMs: z.number().min(0).meta({ description: 'longest time in milliseconds' }),
      })
      .nullable()
      .meta({ description: 'times of the searches in the server; null without searches' }),
    days: z
      .array(
        z.object({
          day: z.iso.date().meta({ description: 'day in UTC' }),
          searches: z.int().min(1).meta({ description: 'number of searches' }),
          withoutGoodResults: z.int().min(0).meta({ description: 'number of searches without good results' }),
        }),
      )
      .meta({ description: 'days with searches, oldest first' }),
    unanswered: z.array(z.object({ ...questionFields, ...resultFigures })).meta({
      description: `questions without good results, the most frequent first: no passage, or \`coverage\` below ${limits.goodCoverage} and no \`similarity\` of ${limits.goodSimilarity} or more. The figures are those of the last such search`,
    }),
    repeated: z
      .array(
        z.object({
          ...questionFields,
          callers: z.int().min(0).meta({ description: 'number of distinct callers, without anonymous ones' }),
        }),
      )
      .meta({
        description:
          'questions that were searched for more than once, the most frequent first. Case, spaces, and punctuation at the end are ignored',
      }),
    slow: z
      .array(
        z.object({
          ...questionFields,
          maxMs: z.number().min(0).meta({ description: 'longest time in milliseconds' }),
          mode: z.string().meta({ description: 'how the passages of the slowest search were ranked' }),
        }),
      )
      .meta({ description: 'questions with the slowest searches, the slowest first' }),
  })
  .meta({ id: 'QueryInsights' })
export type QueryInsights = z.output<typeof QueryInsights>

export const insightsQuery = z.object({
  since: timestampInput.optional().meta({
    description: 'only searches from this time on; by default, those of the last 7 days',
  }),
  limit: limitParameter(limits.insightQuestionsMax, limits.insightQuestionsDefault).meta({
    description: 'maximum number of questions in each list',
  }),
})
export type InsightsQuery = z.output<typeof insightsQuery>
