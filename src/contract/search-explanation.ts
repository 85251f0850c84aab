import { z } from 'zod'
import { explainedShaping } from './search-shaping.ts'

/** Lists that a search ranks passages by, in display order. */
export const listNames = ['lexical', 'vector', 'sentences'] as const

const ExplainedList = z
  .object({
    name: z.enum(listNames).meta({
      description:
        '`lexical` ranks by words, `vector` by the vectors of the embedding service, and `sentences` by the built-in sentence model',
    }),
    weight: z.number().min(0).max(1).meta({
      description: 'weight of the list in the fused score; the weights of all lists add up to 1',
    }),
    rank: z.int().min(1).nullable().meta({
      description: 'position of the passage in the list, from 1; null if the list does not contain it',
    }),
    score: z.number().nullable().meta({
      description:
        'score in the list: BM25 for words, similarity for vectors; null if the list does not contain the passage',
    }),
    scaledScore: z.number().min(0).max(1).nullable().meta({
      description:
        'score scaled to the range from 0 to 1, as it is fused; 0 if the list does not contain the passage, null if the search used the scores of one list as they are',
    }),
    contribution: z.number().meta({
      description:
        'part of `fusedScore` from this list: `weight` × `scaledScore`, or the score if it is not scaled',
    }),
  })
  .meta({ id: 'ExplainedList' })
export type ExplainedList = z.output<typeof ExplainedList>

const ExplainedWord = z
  .object({
    word: z.string().meta({ description: 'word of the query, in lowercase and without accents' }),
    match: z.enum(['word', 'prefix', 'similar']).meta({
      description:
        '`prefix` for an unfinished word, `similar` if no passage contains the word, so that similar words were searched',
    }),
    terms: z.array(z.string()).meta({
      description: 'terms of the index that were searched for the word; empty if no passage contains one',
    }),
    passages: z.int().min(0).meta({
      description: 'number of passages with the word, of those that you may see and that match the filter',
    }),
    weight: z.number().min(0).meta({
      description: 'inverse document frequency: above 0, and higher for rare words',
    }),
    score: z.number().min(0).meta({
      description: 'part of the lexical score from this word (BM25); 0 if the passage does not contain it',
    }),
  })
  .meta({ id: 'ExplainedWord' })
export type ExplainedWord = z.output<typeof ExplainedWord>

/** Reasons for the rank of a hit. */
export const SearchExplanation = z
  .object({
    fusedScore: z.number().meta({
      description:
        'sum of the contributions of all lists, before reranking and before the weight of the knowledge base',
    }),
    lists: z.array(ExplainedList).meta({ description: 'the lists that the search used' }),
    weighting: z
      .object({
        lexicalWeight: z.number().min(0).max(1).meta({
          description: 'weight of words as against vectors, before `knownShare` is applied',
        }),
        requested: z.boolean().meta({
          description: 'true if the request sets `lexicalWeight`; false if it is the default',
        }),
        knownShare: z.number().min(0).max(1).meta({
          description:
            'share of the words in the query that the embedder knows. The weight of vectors is multiplied by it.',
        }),
        coverage: z.number().min(0).max(1).nullable().meta({
          description:
            'highest share of the words in the query that one of the ten best passages by words contains. It decides the weight of `sentences`. Null if it was not needed.',
        }),
      })
      .nullable()
      .meta({ description: 'how the weights of the lists were chosen; null if the search used one list' }),
    words: z
      .array(ExplainedWord)
      .meta({ description: 'words of the query; empty if the search did not use words' }),
    filtered: z.boolean().meta({ description: 'true if a filter limited the search' }),
    rerank: z
      .object({
        from: z.int().min(1).meta({ description: 'rank before reranking' }),
        to: z.int().min(1).meta({ description: 'rank after reranking' }),
        service: z
          .string()
          .nullable()
          .meta({ description: 'name of the reranking service; null for reranking by words' }),
      })
      .nullable()
      .meta({ description: 'change by reranking; null if the passage was not reranked' }),
    ...explainedShaping,
    knowledgeBaseWeight: z.number().min(0).max(1).optional().meta({
      description:
        'factor of the score in a search of several knowledge bases: 1 if the best passages of this one contain all words of the query',
    }),
  })
  .meta({ id: 'SearchExplanation' })
export type SearchExplanation = z.output<typeof SearchExplanation>

const WhyNotList = ExplainedList.extend({
  score: z.number().nullable().meta({
    description:
      'score of the passage in the list: BM25 for words, similarity for vectors; can be present if `rank` is null, and is null if the list cannot rank the passage',
  }),
  cutoffScore: z.number().nullable().meta({
    description: 'score of the passage at position `topK` in the list; null if the list is shorter',
  }),
}).meta({ id: 'WhyNotList' })

const BeatenBy = z
  .object({
    rank: z.int().min(1).meta({ description: 'rank in the results, from 1' }),
    id: z.string().meta({ description: 'ID of the passage' }),
    documentId: z.string().nullable().meta({ description: 'document of the passage; null for a record' }),
    score: z.number().meta({ description: 'score of the passage' }),
  })
  .meta({ id: 'BeatenBy' })

const Remedy = z
  .object({
    action: z
      .enum([
        'raiseTopK',
        'removeFilter',
        'useWords',
        'removePhrase',
        'waitForVectors',
        'wait',
        'ingestAgain',
        'grantAccess',
        'removeBoosts',
        'removeDiversity',
        'group',
      ])
      .meta({
        description:
          '`raiseTopK`: request `topK` results; `removeFilter`: search without the filter; `useWords`: use words of the passage instead of `words`, which it does not contain; `removePhrase`: search without quotation marks; `waitForVectors`: wait until the passages have sentence vectors; `wait`: wait until the document is ingested; `ingestAgain`: ingest the document again; `grantAccess`: change the policy or the visibility of the document; `removeBoosts`: search without boosts; `removeDiversity`: search without `diversity`; `group`: search with `groupBy`, because other documents have several results',
      }),
    topK: z.int().min(1).optional().meta({ description: 'number of results that includes the document' }),
    words: z.array(z.string()).optional().meta({ description: 'words that the passage does not contain' }),
  })
  .meta({ id: 'Remedy' })
export type Remedy = z.output<typeof Remedy>

/** The stage at which a document dropped out of a search. */
export const WhyNot = z
  .object({
    documentId: z.uuid(),
    stage: z
      .enum([
        'found',
        'visibility',
        'ingest',
        'filter',
        'phrase',
        'candidates',
        'topK',
        'boosts',
        'diversity',
      ])
      .meta({
        description:
          'stage at which the document dropped out: `visibility` if the principal does not see it, `ingest` if it has no passages, `filter` if no passage matches the filter, `phrase` if none contains the quoted phrases, `candidates` if none is among the best of any list, `topK` if the best one ranks below `topK`, `boosts` or `diversity` if only this moved it below `topK`; `found` if it is in the results',
      }),
    status: z.string().nullable().meta({ description: 'status of the document; null if it is not visible' }),
    errorMessage: z
      .string()
      .nullable()
      .meta({ description: 'reason why the ingest failed, at the stage `ingest`; null otherwise' }),
    topK: z.int().min(1).meta({ description: 'number of results that were requested' }),
    rank: z.int().min(1).nullable().meta({
      description: 'rank of the best passage among all candidates, from 1; null if it is not a candidate',
    }),
    score: z
      .number()
      .nullable()
      .meta({ description: 'score of this passage; null if it is not a candidate' }),
    cutoffScore: z.number().nullable().meta({
      description: 'score of the last result; null if there are fewer results than requested',
    }),
    rerank: SearchExplanation.shape.rerank,
    passage: z
      .object({
        id: z.string().meta({ description: 'ID of the passage' }),
        chunkIndex: z.int().nullable(),
      })
      .nullable()
      .meta({
        description: 'best passage of the document; null at the stages `visibility`, `ingest` and `filter`',
      }),
    lists: z.array(WhyNotList).meta({
      description:
        'rank and score of this passage in each list, also beyond the candidates; `rank` is null beyond position 1,000',
    }),
    words: z
      .array(ExplainedWord)
      .meta({ description: 'words of the query, with their scores in this passage' }),
    beatenBy: z.array(BeatenBy).meta({
      description: 'the first three results, and the last one, if the document is not in the results',
    }),
    remedies: z.array(Remedy).meta({ description: 'changes that could bring the document into the results' }),
  })
  .meta({ id: 'WhyNot' })
export type WhyNot = z.output<typeof WhyNot>
