import { z } from 'zod'
import { changesAnyOf, member, needs } from './access.ts'
import { boundedText, filter, isoTimestamp, optionalTextUpTo, vector } from './fields.ts'
import { FolderDescription } from './folder-description.ts'
import { insightsQuery, QueryInsights } from './insights.ts'
import { Job } from './jobs.ts'
import { limits } from './limits.ts'
import { pageOfItems, pageQuery } from './page.ts'
import { route } from './route.ts'
import { SearchExplanation, WhyNot } from './search-explanation.ts'
import { shapingFields } from './search-shaping.ts'

const LexicalSettings = z.object({
  enabled: z.boolean(),
  analyzer: z.string().nullable(),
  options: z.record(z.string(), z.string()),
})

export const KnowledgeBase = z
  .object({
    workspaceId: z.uuid(),
    knowledgeBaseId: z.uuid(),
    name: z.string(),
    description: z.string().nullable(),
    status: z.enum(['active', 'draft', 'deprecated']),
    embeddingServiceId: z.uuid(),
    chunkingServiceId: z.uuid(),
    rerankingServiceId: z.uuid().nullable(),
    language: z.string().nullable(),
    vectorCollection: z.string().nullable(),
    owned: z.boolean(),
    lexical: LexicalSettings,
    semantic: z.boolean().optional(),
    queryLog: z.boolean().optional(),
    policyDsl: z.string().nullable(),
    policyEnabled: z.boolean(),
    importing: z.literal(true).optional().meta({
      description:
        'true while an exported file is being imported; absent otherwise. Searches of several knowledge bases and agents skip it until then',
    }),
    createdAt: isoTimestamp,
    updatedAt: isoTimestamp,
  })
  .meta({ id: 'KnowledgeBase' })
export type KnowledgeBase = z.output<typeof KnowledgeBase>

/** State of the built-in embedder of a knowledge base. */
export const EmbedderState = z
  .object({
    version: z.string().meta({ description: 'name of the current vector space' }),
    state: z.enum(['placeholder', 'fitting', 'ready']),
    fittedChunks: z.int().meta({ description: 'number of chunks to which the vector space was fitted' }),
    chunks: z.int(),
  })
  .meta({ id: 'Embedder' })
export type EmbedderState = z.output<typeof EmbedderState>

/** Progress of the sentence vectors of a knowledge base. */
export const SentenceState = z
  .object({
    state: z.enum(['embedding', 'ready']),
    embeddedChunks: z.int().min(0).meta({ description: 'number of chunks with a sentence vector' }),
    chunks: z.int().min(0),
  })
  .meta({ id: 'SentenceState' })
export type SentenceState = z.output<typeof SentenceState>

const sentences = SentenceState.optional().meta({
  description:
    'progress of the vectors of the built-in sentence model; absent if you may see only some documents, or if the store cannot have them',
})

const ShownKnowledgeBase = KnowledgeBase.extend({ embedder: EmbedderState.optional(), sentences })

/** Item of the list of knowledge bases. `size` and `sentences` are absent for callers who may see only some documents. */
const ListedKnowledgeBase = KnowledgeBase.extend({
  sentences,
  size: z
    .object({
      documents: z
        .int()
        .min(0)
        .meta({ description: 'number of documents, including failed and pending ones' }),
      bytes: z.int().min(0).meta({ description: 'stored bytes, as `bytes.total` of the statistics' }),
    })
    .optional()
    .meta({ description: 'size; absent if you may see only some documents, or if it is not known' }),
}).meta({ id: 'ListedKnowledgeBase' })
export type ListedKnowledgeBase = z.output<typeof ListedKnowledgeBase>

/** Counts, sizes and search times of a knowledge base. */
export const KnowledgeBaseStats = z
  .object({
    workspaceId: z.uuid(),
    knowledgeBaseId: z.uuid(),
    documents: z.int().min(0).meta({ description: 'number of documents, including failed and pending ones' }),
    chunks: z.int().min(0).meta({ description: 'number of chunks and records' }),
    bytes: z
      .object({
        total: z.int().min(0).meta({ description: 'sum of the parts' }),
        text: z.int().min(0).meta({ description: 'titles and texts of the chunks' }),
        metadata: z.int().min(0).meta({ description: 'other fields of the chunks' }),
        vectors: z.int().min(0).meta({ description: 'vectors, 4 bytes per number' }),
        index: z.int().min(0).meta({
          description: 'lexical index, including one that is being built',
        }),
      })
      .meta({
        description:
          'stored bytes by part, without the overhead of the database and space that can be used again',
      }),
    vectors: z
      .object({
        count: z.int().min(0).meta({ description: 'number of vectors' }),
        dimension: z.int().min(0).meta({ description: 'numbers per vector' }),
        metric: z.enum(['cosine', 'dot', 'euclidean']).meta({ description: 'similarity metric' }),
        memoryBytes: z.int().min(0).meta({
          description:
            'memory of the server that the vectors take, including quantized ones; 0 until a search needs them',
        }),
      })
      .meta({ description: 'vectors of the chunks' }),
    index: z
      .object({
        state: z.enum(['ready', 'building']).meta({
          description: '`building` while a new generation is built; searches use the previous one until then',
        }),
        language: z.string().nullable().meta({
          description: 'language of the current generation; null until the first one is complete',
        }),
        generation: z.int().nullable().meta({
          description: 'number of the current generation; null until the first one is complete',
        }),
        segments: z.int().min(0).meta({ description: 'number of segments of the current generation' }),
        terms: z.int().min(0).nullable().meta({
          description:
            'number of distinct terms, estimated with an error of about 1%; null if it is not known, such as during many writes',
        }),
        deletedShare: z.number().min(0).max(1).meta({
          description: 'share of the indexed chunks that were deleted but still take space, from 0 to 1',
        }),
        mergePending: z.boolean().meta({ description: 'true until the segments have been merged' }),
        building: z
          .object({
            chunks: z.int().min(0).meta({ description: 'number of chunks in the new generation' }),
            chunksTotal: z.int().min(0).meta({ description: 'number of chunks in the knowledge base' }),
          })
          .nullable()
          .meta({ description: 'progress of the new generation; null if none is being built' }),
        failure: z
          .object({
            at: isoTimestamp.meta({ description: 'time of the failure' }),
            message: z.string().meta({ description: 'description of the problem' }),
          })
          .nullable()
          .meta({
            description:
              'last failure of background work on the indexes of this store; null if it has succeeded since then',
          }),
      })
      .nullable()
      .meta({ description: 'lexical index; null if words are not indexed' }),
    lastWriteAt: isoTimestamp
      .nullable()
      .meta({ description: 'time of the last change of a chunk; null if it is not known' }),
    searches: z
      .array(
        z.object({
          mode: z.enum(['vector', 'lexical', 'hybrid']).meta({ description: 'how the hits were ranked' }),
          count: z.int().min(1).meta({ description: 'number of measured searches' }),
          p50Ms: z.number().min(0).meta({ description: 'median time in milliseconds' }),
          p95Ms: z.number().min(0).meta({ description: '95th percentile of the time in milliseconds' }),
        }),
      )
      .meta({
        description: `times in the server of the last ${limits.searchesMeasured} successful searches of this knowledge base alone, by mode, since the start of the server`,
      }),
  })
  .meta({ id: 'KnowledgeBaseStats' })
export type KnowledgeBaseStats = z.output<typeof KnowledgeBaseStats>

const CompactedSize = z.object({
  index: z
    .object({
      segments: z.int().min(0).meta({ description: 'number of segments' }),
      bytes: z.int().min(0).meta({ description: 'stored bytes' }),
    })
    .nullable()
    .meta({ description: 'lexical index; null if words are not indexed' }),
  file: z
    .object({
      bytes: z.int().min(0).meta({ description: 'size of the file in bytes, without its log' }),
      freeBytes: z.int().min(0).meta({ description: 'part of the file that new content will use' }),
      canShrink: z.boolean().meta({
        description: 'true if a compaction makes the file smaller; false for stores of earlier versions',
      }),
    })
    .nullable()
    .meta({
      description:
        'database file of the whole runtime; null if the caller is limited to some workspaces or is anonymous, and if there is no file',
    }),
})

/** Sizes before and after a compaction. */
export const KnowledgeBaseCompaction = z
  .object({
    workspaceId: z.uuid(),
    knowledgeBaseId: z.uuid(),
    before: CompactedSize.meta({ description: 'sizes before the compaction' }),
    after: CompactedSize.meta({ description: 'sizes after the compaction' }),
  })
  .meta({ id: 'KnowledgeBaseCompaction' })
export type KnowledgeBaseCompaction = z.output<typeof KnowledgeBaseCompaction>

export const CompactionProgress = z
  .object({
    part: z.enum(['index', 'file']).meta({ description: 'part that is being compacted' }),
    done: z.int().min(0).meta({ description: 'bytes done so far' }),
    total: z.int().min(0).meta({ description: 'bytes of the part' }),
  })
  .meta({ id: 'CompactionProgress' })
export type CompactionProgress = z.output<typeof CompactionProgress>

const ReindexRequest = z
  .strictObject({
    chunkingServiceId: z.uuid().meta({ description: 'chunking service to use from now on' }),
    embeddingServiceId: z.uuid().meta({
      description:
        'embedding service to use when the new vectors are complete; the built-in embedder is not possible',
    }),
  })
  .partial()
export type ReindexRequest = z.output<typeof ReindexRequest>

/** The last job that reindexed a knowledge base. */
export const Reindexing = z
  .object({
    job: Job.nullable().meta({ description: 'last job; null if there was none, or if it was deleted' }),
    documents: z
      .object({
        rechunked: z
          .int()
          .min(0)
          .meta({ description: 'number of documents that were split into chunks again' }),
        unchanged: z.int().min(0).meta({ description: 'number of documents whose chunks did not change' }),
        kept: z.int().min(0).meta({
          description:
            'number of documents that keep their chunks, because their text cannot be read from them; ingest these again',
        }),
      })
      .nullable()
      .meta({ description: 'results of the job so far; null without a job' }),
  })
  .meta({ id: 'Reindexing' })
export type Reindexing = z.output<typeof Reindexing>

/** Response field that lists the queries to a remote database. Empty for the embedded store. */
const remoteQueries = { astraQueries: z.array(z.unknown()) }

const changeable = {
  description: optionalTextUpTo(limits.descriptionChars),
  status: z.enum(['active', 'draft', 'deprecated']),
  rerankingServiceId: z.uuid().nullable(),
  language: z.string().nullable(),
  lexical: LexicalSettings,
  semantic: z.boolean(),
}

const knowledgeBaseName = z
  .string()
  .regex(/^[A-Za-z][A-Za-z0-9_]{0,47}$/, 'must be a letter, then up to 47 letters, digits or underscores')

const KnowledgeBaseCreate = z.object({
  knowledgeBaseId: z.uuid().optional(),
  name: knowledgeBaseName,
  description: changeable.description.default(null),
  status: changeable.status.default('active'),
  embeddingServiceId: z.uuid().optional(),
  chunkingServiceId: z.uuid().optional(),
  rerankingServiceId: changeable.rerankingServiceId.default(null),
  language: changeable.language.default(null),
  vectorCollection: z.string().nullable().optional(),
  attach: z.boolean().default(false),
  lexical: LexicalSettings.optional(),
  semantic: changeable.semantic.optional(),
})
export type KnowledgeBaseCreate = z.output<typeof KnowledgeBaseCreate>

const KnowledgeBasePatch = z
  .strictObject({
    ...changeable,
    queryLog: z.boolean(),
    policyDsl: z.string().nullable(),
    policyEnabled: z.boolean(),
  })
  .partial()
export type KnowledgeBasePatch = z.output<typeof KnowledgeBasePatch>

/** Existing collection that can be attached to a knowledge base. */
export const AdoptableCollection = z
  .object({
    name: z.string(),
    vectorDimension: z.int().positive(),
    vectorSimilarity: z.enum(['cosine', 'dot', 'euclidean']),
    vectorService: z.object({ provider: z.string(), modelName: z.string() }).nullable(),
    lexicalEnabled: z.boolean(),
    rerankEnabled: z.boolean(),
    attached: z
      .boolean()
      .meta({ description: 'true if a knowledge base of this workspace uses the collection' }),
  })
  .meta({ id: 'Adoptable' })
export type AdoptableCollection = z.output<typeof AdoptableCollection>

export const SearchHit = z
  .object({
    id: z.string(),
    score: z.number(),
    coverage: z.number().min(0).max(1).optional().meta({
      description:
        'share of the words in the query that the passage and its title contain, from 0 to 1. Rare words count more. Present only if `includeCoverage` was true.',
    }),
    explanation: SearchExplanation.optional().meta({
      description: 'reasons for the rank of the passage. Present only if `explain` was true.',
    }),
    folder: FolderDescription.optional().meta({
      description:
        'deepest described folder that contains the document. Present only if `includeFolder` was true and there is one.',
    }),
    chunks: z
      .object({
        first: z.int().min(0).meta({ description: 'position of the first chunk in the document' }),
        last: z.int().min(0).meta({ description: 'position of the last chunk in the document' }),
      })
      .optional()
      .meta({
        description:
          'range of the chunks that `chunkText` consists of. Present only if `neighbors` was requested and the hit has a document. `id`, `score` and the other fields are those of the best chunk.',
      }),
    payload: z.record(z.string(), z.unknown()).optional(),
    vector: z.array(z.number()).optional(),
  })
  .meta({ id: 'Hit' })
export type SearchHit = z.output<typeof SearchHit>

const searchFields = {
  vector: vector.optional(),
  text: boundedText(limits.searchTextChars).optional(),
  topK: z.int().min(1).max(limits.topKMax).default(limits.topKDefault),
  filter: filter.optional(),
  includeEmbeddings: z.boolean().default(false),
  includeCoverage: z.boolean().optional().meta({
    description:
      'true to add `coverage` to each hit: the share of the words in the query that the hit contains; requires `text`',
  }),
  includeFolder: z.boolean().optional().meta({
    description: 'true to add `folder` to each hit: the description of the folder that contains its document',
  }),
  explain: z.boolean().optional().meta({
    description:
      'true to add `explanation` to each hit: its rank and score in each list, the weights of the lists, and the words that it matches',
  }),
  hybrid: z.boolean().optional(),
  lexicalWeight: z.number().min(0).max(1).optional().meta({
    description:
      'weight of the lexical score, from 0 to 1; 0.5 by default, or 0.8 if the built-in embedder is not fitted yet',
  }),
  rerank: z.boolean().optional().meta({
    description:
      'true to reorder the hits with the reranking service of the knowledge base, or, without one, by combining their ranks with their lexical ranks; by default, true if the knowledge base has a service and `text` is sent without `prefix`. If the service fails, the hits keep their order, and `X-Workbase-Ignored` names `rerank`',
  }),
  prefix: z.boolean().optional().meta({
    description:
      'true for a search while a user types: the last word of `text` also matches words that it is the beginning of, unless a space follows',
  }),
  knowledgeFilterId: z.uuid().optional().meta({ description: 'saved filter that every hit must also match' }),
  ...shapingFields,
}

const exactlyOneMessage = 'send exactly one of text and vector'
function hasExactlyOne({ text, vector }: { text?: unknown; vector?: unknown }): boolean {
  return (text === undefined) !== (vector === undefined)
}

const SearchRequest = z.object(searchFields).refine(hasExactlyOne, exactlyOneMessage)
export type SearchRequest = z.output<typeof SearchRequest>

const SearchManyRequest = z
  .object({
    ...searchFields,
    knowledgeBaseIds: z
      .array(z.uuid())
      .min(1)
      .max(limits.knowledgeBasesPerSearch)
      .optional()
      .meta({ description: 'knowledge bases to search; by default, all knowledge bases of the workspace' }),
  })
  .refine(hasExactlyOne, exactlyOneMessage)
export type SearchManyRequest = z.output<typeof SearchManyRequest>

const {
  includeEmbeddings: _,
  includeCoverage: __,
  includeFolder: ___,
  explain: ____,
  ...rankingFields
} = searchFields
const WhyNotRequest = z
  .object({ ...rankingFields, documentId: z.uuid() })
  .refine(hasExactlyOne, exactlyOneMessage)

const KnowledgeBaseHit = SearchHit.extend({
  knowledgeBaseId: z.uuid(),
  alsoIn: z
    .array(z.object({ knowledgeBaseId: z.uuid(), documentId: z.uuid() }))
    .optional()
    .meta({
      description:
        'documents with the same text in other knowledge bases that were searched, one for each; absent if there are none. Their passages are not repeated in the results.',
    }),
}).meta({ id: 'HitOfKnowledgeBase' })
export type KnowledgeBaseHit = z.output<typeof KnowledgeBaseHit>

const json = { kind: 'json', limitBytes: limits.jsonBodyBytes } as const
const notFoundErrors = ['workspace_not_found', 'knowledge_base_not_found'] as const
/** Error codes of all requests that use the store of a workspace. */
export const storeErrors = [
  'driver_unavailable',
  'workspace_misconfigured',
  'data_api_error',
  'data_api_unavailable',
] as const
const searchErrors = [
  ...storeErrors,
  'policy_principal_required',
  'knowledge_filter_not_found',
  'collection_unavailable',
  'dimension_mismatch',
  'vector_collection_not_allowed',
  'vector_collection_required',
  'embedding_unavailable',
  'embedding_dimension_mismatch',
  'hybrid_not_supported',
  'rerank_not_supported',
] as const
const searchDescription =
  'Returns passages, best first. If the knowledge base indexes words, a search with `text` is hybrid: vector and lexical scores are scaled to the range from 0 to 1 and combined with `lexicalWeight` (1 means only lexical scores). Words that the built-in embedder does not know affect only the lexical score. If the hits get too long for a response, only the best ones are returned, and `topK` is listed in the header `X-Workbase-Ignored`.'

const StartedImport = z.object({
  knowledgeBase: KnowledgeBase.meta({ description: 'the knowledge base, which is incomplete' }),
  nextLine: z.int().meta({ description: 'number of the next line to send' }),
})

/** Fields that decide which documents a principal sees, and whether searches are recorded. */
const accessFields = ['policyDsl', 'policyEnabled', 'queryLog']

export const kb = {
  list: route({
    method: 'GET',
    path: '/api/v1/workspaces/:workspaceId/knowledge-bases',
    summary: 'List knowledge bases',
    access: member('read:content'),
    query: pageQuery,
    replies: { 200: pageOfItems(ListedKnowledgeBase) },
    errors: ['workspace_not_found', 'invalid_cursor'],
  }),
  create: route({
    method: 'POST',
    path: '/api/v1/workspaces/:workspaceId/knowledge-bases',
    summary: 'Create a knowledge base',
    description:
      'Creates a knowledge base and the collection for its vectors. If you omit the ID of the chunking or embedding service, the oldest service of this type in the workspace is used.',
    access: needs('write:kb'),
    body: { ...json, mode: 'lenient', schema: KnowledgeBaseCreate },
    replies: { 201: KnowledgeBase.extend(remoteQueries) },
    errors: [
      'workspace_not_found',
      'embedding_service_not_found',
      'chunking_service_not_found',
      'reranking_service_not_found',
      'vector_collection_not_allowed',
      'vector_collection_required',
      'kb_name_must_match_collection',
      'kb_name_taken',
      'collection_name_taken',
      'collection_not_found',
      'dimension_mismatch',
      'vectorize_service_mismatch',
      'conflict',
      ...storeErrors,
    ],
    audit: 'kb.create',
  }),
  show: route({
    method: 'GET',
    path: '/api/v1/workspaces/:workspaceId/knowledge-bases/:knowledgeBaseId',
    summary: 'Show a knowledge base',
    access: member('read:content'),
    replies: { 200: ShownKnowledgeBase },
    errors: [...notFoundErrors, ...storeErrors, 'collection_unavailable'],
  }),
  stats: route({
    method: 'GET',
    path: '/api/v1/workspaces/:workspaceId/knowledge-bases/:knowledgeBaseId/stats',
    summary: 'Show counts, sizes and search times of a knowledge base',
    description:
      'Returns the number of documents and chunks, stored bytes by part, the state of the lexical index, and the times of recent searches. The figures count everything, so a caller who may see only some documents gets `forbidden`.',
    access: member('read:content'),
    replies: { 200: KnowledgeBaseStats },
    errors: [...notFoundErrors, ...storeErrors, 'collection_unavailable', 'policy_principal_required'],
  }),
  compact: route({
    method: 'POST',
    path: '/api/v1/workspaces/:workspaceId/knowledge-bases/:knowledgeBaseId/compact',
    summary: 'Compact a knowledge base',
    description:
      'Merges the segments of the lexical index, removes deleted chunks from it, and returns the free part of the database file to the disk. Searches and writes continue in the meantime. The server does this by itself after many deletions, so a request is needed only to have it done at once. The response is sent when the work is done. With `Accept: text/event-stream`, the event `progress` is streamed in the meantime; the last event is `done` or `error`. If you close the connection, the work stops, and what it has done so far is kept. The sizes include documents that you may not see, so a caller who may see only some documents gets `forbidden`.',
    access: needs('write:kb'),
    replies: { 200: KnowledgeBaseCompaction },
    events: {
      progress: CompactionProgress,
      done: KnowledgeBaseCompaction,
      error: z.object({
        code: z.string(),
        message: z.string().meta({ description: 'description of the problem' }),
      }),
    },
    errors: [...notFoundErrors, ...storeErrors, 'collection_unavailable'],
  }),
  reindex: route({
    method: 'POST',
    path: '/api/v1/workspaces/:workspaceId/knowledge-bases/:knowledgeBaseId/reindex',
    summary: 'Reindex a knowledge base',
    description:
      'Starts a job that splits the documents into chunks with the current settings of the chunking service, and embeds the chunks that changed. With `chunkingServiceId`, the knowledge base uses this service from now on. With `embeddingServiceId`, the job embeds all chunks with this service, and the knowledge base changes to it when all vectors are complete. Until then, searches use the previous chunks of a document, and the previous embedding service. Documents can be ingested, changed and deleted in the meantime. If the job fails, start it again: it continues where it stopped. A caller who may see only some documents gets `forbidden`, because the job counts all of them. With row-level access, a new embedding service also needs `manage:access`.',
    access: needs('write:kb'),
    body: { ...json, mode: 'strict', schema: ReindexRequest },
    replies: { 202: z.object({ job: Job }) },
    errors: [
      ...notFoundErrors,
      ...storeErrors,
      'collection_unavailable',
      'list_records_not_supported',
      'chunking_service_not_found',
      'embedding_service_not_found',
      'invalid_chunker',
      'vector_collection_required',
      'conflict',
      'policy_principal_required',
    ],
    audit: 'kb.reindex',
  }),
  reindexing: route({
    method: 'GET',
    path: '/api/v1/workspaces/:workspaceId/knowledge-bases/:knowledgeBaseId/reindex',
    summary: 'Show the last job that reindexed a knowledge base',
    description:
      'Returns the job with its progress. Follow it with the events of the job. A caller who may see only some documents gets `forbidden`.',
    access: member('read:content'),
    replies: { 200: Reindexing },
    errors: [...notFoundErrors, 'policy_principal_required'],
  }),
  update: route({
    method: 'PATCH',
    path: '/api/v1/workspaces/:workspaceId/knowledge-bases/:knowledgeBaseId',
    summary: 'Change a knowledge base',
    access: needs('write:kb').requireIf(changesAnyOf(...accessFields), 'manage:access'),
    body: { ...json, mode: 'strict', schema: KnowledgeBasePatch },
    replies: { 200: KnowledgeBase },
    errors: [...notFoundErrors, 'reranking_service_not_found', 'conflict'],
    audit: { action: 'kb.update', fields: accessFields },
  }),
  rename: route({
    method: 'POST',
    path: '/api/v1/workspaces/:workspaceId/knowledge-bases/:knowledgeBaseId/rename',
    summary: 'Rename a knowledge base',
    description:
      'Changes the name. The ID, the documents and the collection stay the same, so agents and saved filters keep working. The old name can be used for a new knowledge base.',
    access: needs('write:kb'),
    body: { ...json, mode: 'strict', schema: z.strictObject({ name: knowledgeBaseName }) },
    replies: { 200: KnowledgeBase },
    errors: [...notFoundErrors, 'kb_name_taken', 'conflict'],
    audit: 'kb.update',
  }),
  delete: route({
    method: 'DELETE',
    path: '/api/v1/workspaces/:workspaceId/knowledge-bases/:knowledgeBaseId',
    summary: 'Delete a knowledge base and its documents',
    access: needs('write:kb'),
    replies: { 204: null },
    errors: [...notFoundErrors, 'conflict', ...storeErrors],
    audit: 'kb.delete',
  }),
  search: route({
    method: 'POST',
    path: '/api/v1/workspaces/:workspaceId/knowledge-bases/:knowledgeBaseId/search',
    summary: 'Search a knowledge base',
    description: searchDescription,
    access: member('read:content'),
    body: { ...json, mode: 'lenient', schema: SearchRequest },
    replies: { 200: z.array(SearchHit) },
    errors: [...notFoundErrors, ...searchErrors],
  }),
  whyNot: route({
    method: 'POST',
    path: '/api/v1/workspaces/:workspaceId/knowledge-bases/:knowledgeBaseId/search/why-not',
    summary: 'Explain why a search does not find a document',
    description:
      'Runs a search, and returns the stage at which the document drops out, its rank and score in each list, the results that beat it, and what could bring it in. All figures are computed from the passages that you may see. A document that you may not see is not found, unless you may manage access, such as when you view the workspace as another principal.',
    access: member('read:content'),
    body: { ...json, mode: 'lenient', schema: WhyNotRequest },
    replies: { 200: WhyNot },
    errors: [...notFoundErrors, 'document_not_found', 'list_records_not_supported', ...searchErrors],
  }),
  searchMany: route({
    method: 'POST',
    path: '/api/v1/workspaces/:workspaceId/search',
    summary: 'Search several knowledge bases',
    description: `${searchDescription} Each knowledge base is searched separately, and the results are merged by score. Before that, the scores of a knowledge base are lowered if its best passages contain few words of the query. A passage of a document that is in several knowledge bases is returned once, and \`alsoIn\` names the others. A saved filter (\`knowledgeFilterId\`) belongs to one knowledge base: with it, \`knowledgeBaseIds\` must contain only this knowledge base.`,
    access: member('read:content'),
    body: { ...json, mode: 'lenient', schema: SearchManyRequest },
    replies: { 200: z.array(KnowledgeBaseHit) },
    errors: [...notFoundErrors, ...searchErrors],
  }),
  export: route({
    method: 'GET',
    path: '/api/v1/workspaces/:workspaceId/knowledge-bases/:knowledgeBaseId/export',
    summary: 'Export a knowledge base',
    description:
      'Returns a page of an exported file: its next lines. Append the lines of all pages, each with a line feed. The lines contain the settings, the documents with their visibility and owner, their chunks, and the vectors of the embedding service, but no secrets. The file contains only what you may see. With `all=true`, which needs `manage:access`, it contains everything. Documents that are being ingested are omitted. If a document changes while its chunks are on two pages, the request gets `conflict`: continue after an earlier page. If the embedding service of the knowledge base changes, the request gets `invalid_cursor`: start again.',
    access: member('read:content'),
    query: z.object({
      cursor: z.string().min(1).optional(),
      all: z.enum(['true', 'false']).optional().meta({
        description: '`true` to include what you may not see; needs the scope `manage:access`',
      }),
    }),
    replies: {
      200: z.object({
        lines: z.array(z.string()).meta({ description: 'lines of the file, without line feeds' }),
        isComplete: z.boolean().meta({ description: 'true if the page does not end within a document' }),
        nextCursor: z.string().nullable(),
      }),
    },
    errors: [
      ...notFoundErrors,
      ...storeErrors,
      'collection_unavailable',
      'invalid_cursor',
      'list_records_not_supported',
      'policy_principal_required',
      'conflict',
    ],
  }),
  beginImport: route({
    method: 'POST',
    path: '/api/v1/workspaces/:workspaceId/knowledge-bases/import',
    summary: 'Start or continue the import of a knowledge base',
    description:
      'Creates a knowledge base from the first line of an exported file, and marks it as `importing`. Then send the other lines to `POST KB/ingest/import`. If an import of the same file was interrupted, returns that knowledge base, and the number of its lines. The workspace needs an embedding service with the same provider, model, dimension and metric. A file from a workspace with row-level access needs a workspace with row-level access and the scope `manage:access`, so that nothing becomes more visible.',
    access: needs('write:kb'),
    body: {
      ...json,
      mode: 'strict',
      schema: z.strictObject({
        header: z.string().meta({ description: 'first line of the file' }),
        name: knowledgeBaseName.optional(),
        embeddingServiceId: z.uuid().optional(),
      }),
    },
    replies: { 200: StartedImport, 201: StartedImport },
    errors: [
      'workspace_not_found',
      'archive_damaged',
      'archive_not_supported',
      'embedding_service_not_found',
      'chunking_service_not_found',
      'kb_name_taken',
      'collection_name_taken',
      'dimension_mismatch',
      'vectorize_service_mismatch',
      'conflict',
      ...storeErrors,
    ],
    audit: 'kb.create',
  }),
  importLines: route({
    method: 'POST',
    path: '/api/v1/workspaces/:workspaceId/knowledge-bases/:knowledgeBaseId/ingest/import',
    summary: 'Import lines of an exported file',
    description:
      'Stores lines of the file in one transaction. Send them in order; lines that were already stored are skipped. The last line contains the checksum of all lines: if it is right, the knowledge base is complete and `importing` is removed. Vectors in the file are stored as they are, without a request to a provider. Visibility and owners are kept for a caller with `manage:access`; other callers own the imported documents.',
    access: needs('write:ingest'),
    body: {
      ...json,
      limitBytes: limits.ingestBodyBytes,
      mode: 'strict',
      schema: z.strictObject({
        from: z.int().min(1).meta({ description: 'number of the first line; the header is line 0' }),
        lines: z
          .array(z.string())
          .min(1)
          .max(limits.archiveLinesPerImport)
          .meta({ description: 'lines of the file, without line feeds' }),
      }),
    },
    replies: {
      200: z.object({
        nextLine: z.int().meta({ description: 'number of the next line to send' }),
        isComplete: z.boolean().meta({ description: 'true if the whole file has been imported' }),
      }),
    },
    errors: [
      ...notFoundErrors,
      ...storeErrors,
      'collection_unavailable',
      'archive_damaged',
      'policy_denied',
      'invalid_metadata',
      'conflict',
    ],
  }),
  insights: route({
    method: 'GET',
    path: '/api/v1/workspaces/:workspaceId/knowledge-bases/:knowledgeBaseId/insights',
    summary: 'Show what was searched for in a knowledge base',
    description:
      'Summarizes the query log of the knowledge base, which the field `queryLog` turns on: questions without good results, repeated questions, slow searches, and counts by day. The results of each search were computed from the documents that its caller could see. With row-level access, a caller without `manage:access` gets a summary of only its own searches.',
    access: needs('read:audit').orElse('manage:access'),
    query: insightsQuery,
    replies: { 200: QueryInsights },
    errors: [...notFoundErrors],
  }),
  clearInsights: route({
    method: 'DELETE',
    path: '/api/v1/workspaces/:workspaceId/knowledge-bases/:knowledgeBaseId/insights',
    summary: 'Delete the query log of a knowledge base',
    description:
      'Deletes all recorded searches of the knowledge base. It does not change `queryLog`, so later searches are recorded if it is true.',
    access: needs('manage:access'),
    replies: { 204: null },
    errors: [...notFoundErrors],
    audit: 'kb.clear_query_log',
  }),
  adoptable: route({
    method: 'GET',
    path: '/api/v1/workspaces/:workspaceId/adoptable-collections',
    summary: 'List collections that can be attached',
    access: member('read:content'),
    replies: { 200: z.object({ items: z.array(AdoptableCollection) }) },
    errors: ['workspace_not_found', ...storeErrors],
  }),
}
