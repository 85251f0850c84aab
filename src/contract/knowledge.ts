import { z } from 'zod'
import { member, needs } from './access.ts'
import { boundedText, filter, timestamp, vector } from './fields.ts'
import { limits } from './limits.ts'
import { page, pageQuery } from './page.ts'
import { route } from './route.ts'

const Lexical = z.object({
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
    lexical: Lexical,
    policyDsl: z.string().nullable(),
    policyEnabled: z.boolean(),
    createdAt: timestamp,
    updatedAt: timestamp,
  })
  .meta({ id: 'KnowledgeBase' })
export type KnowledgeBase = z.output<typeof KnowledgeBase>

/** State of the built-in embedder of a knowledge base. */
export const Embedder = z
  .object({
    version: z.string().meta({ description: 'name of the vector space that is in force' }),
    state: z.enum(['placeholder', 'fitting', 'ready']),
    fittedChunks: z.int().meta({ description: 'chunks that the space was fitted on' }),
    chunks: z.int(),
  })
  .meta({ id: 'Embedder' })
export type Embedder = z.output<typeof Embedder>

const Shown = KnowledgeBase.extend({ embedder: Embedder.optional() })

/** Snapshot of a remote call; the embedded store makes none. */
const queries = { astraQueries: z.array(z.unknown()) }

const changeable = {
  description: z.string().nullable(),
  status: z.enum(['active', 'draft', 'deprecated']),
  rerankingServiceId: z.uuid().nullable(),
  language: z.string().nullable(),
  lexical: Lexical,
}

const KnowledgeBaseCreate = z.object({
  knowledgeBaseId: z.uuid().optional(),
  name: z
    .string()
    .regex(/^[A-Za-z][A-Za-z0-9_]{0,47}$/, 'must be a letter, then up to 47 letters, digits or underscores'),
  description: changeable.description.default(null),
  status: changeable.status.default('active'),
  embeddingServiceId: z.uuid().optional(),
  chunkingServiceId: z.uuid().optional(),
  rerankingServiceId: changeable.rerankingServiceId.default(null),
  language: changeable.language.default(null),
  vectorCollection: z.string().nullable().optional(),
  attach: z.boolean().default(false),
  lexical: Lexical.optional(),
})
export type KnowledgeBaseCreate = z.output<typeof KnowledgeBaseCreate>

const KnowledgeBasePatch = z
  .strictObject({ ...changeable, policyDsl: z.string().nullable(), policyEnabled: z.boolean() })
  .partial()
export type KnowledgeBasePatch = z.output<typeof KnowledgeBasePatch>

export const Hit = z
  .object({
    id: z.string(),
    score: z.number(),
    payload: z.record(z.string(), z.unknown()).optional(),
    vector: z.array(z.number()).optional(),
  })
  .meta({ id: 'Hit' })
export type Hit = z.output<typeof Hit>

const searchFields = {
  vector: vector.optional(),
  text: boundedText(limits.searchTextChars).optional(),
  topK: z.int().min(1).max(limits.topKMax).default(limits.topKDefault),
  filter: filter.optional(),
  includeEmbeddings: z.boolean().default(false),
  hybrid: z.boolean().optional(),
  lexicalWeight: z.number().min(0).max(1).optional().meta({
    description:
      'share of the lexical score; 0.5 unless given, more while the built-in embedder is a placeholder',
  }),
  rerank: z.boolean().optional(),
}

const Search = z
  .object(searchFields)
  .refine(
    body => (body.text === undefined) !== (body.vector === undefined),
    'send exactly one of text and vector',
  )
export type Search = z.output<typeof Search>

const json = { kind: 'json', limitBytes: limits.jsonBodyBytes } as const
const found = ['workspace_not_found', 'knowledge_base_not_found'] as const

export const kb = {
  list: route({
    method: 'GET',
    path: '/api/v1/workspaces/:workspaceId/knowledge-bases',
    summary: 'List knowledge bases',
    access: member('read:content'),
    query: pageQuery,
    replies: { 200: page(KnowledgeBase) },
    errors: ['workspace_not_found', 'invalid_cursor'],
  }),
  create: route({
    method: 'POST',
    path: '/api/v1/workspaces/:workspaceId/knowledge-bases',
    summary: 'Create a knowledge base and the collection that holds its vectors',
    description: 'Service ids that are left out bind the first service of each kind.',
    access: needs('write:kb'),
    body: { ...json, mode: 'lenient', schema: KnowledgeBaseCreate },
    replies: { 201: KnowledgeBase.extend(queries) },
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
      'driver_unavailable',
    ],
    audit: 'kb.create',
  }),
  show: route({
    method: 'GET',
    path: '/api/v1/workspaces/:workspaceId/knowledge-bases/:knowledgeBaseId',
    summary: 'Show a knowledge base, with the state of its built-in embedder',
    access: member('read:content'),
    replies: { 200: Shown },
    errors: found,
  }),
  update: route({
    method: 'PATCH',
    path: '/api/v1/workspaces/:workspaceId/knowledge-bases/:knowledgeBaseId',
    summary: 'Change a knowledge base; its name, services and collection are fixed',
    access: needs('write:kb'),
    body: { ...json, mode: 'strict', schema: KnowledgeBasePatch },
    replies: { 200: KnowledgeBase },
    errors: [...found, 'reranking_service_not_found'],
  }),
  delete: route({
    method: 'DELETE',
    path: '/api/v1/workspaces/:workspaceId/knowledge-bases/:knowledgeBaseId',
    summary: 'Delete a knowledge base with its documents; an attached collection stays',
    access: needs('write:kb'),
    replies: { 204: null },
    errors: [...found, 'driver_unavailable'],
    audit: 'kb.delete',
  }),
  search: route({
    method: 'POST',
    path: '/api/v1/workspaces/:workspaceId/knowledge-bases/:knowledgeBaseId/search',
    summary: 'Find passages in a knowledge base, best first',
    description:
      'Text searches are hybrid where lexical search is on: vector and lexical scores are scaled to 0..1 and mixed by lexicalWeight (1 is lexical alone).',
    access: member('read:content'),
    body: { ...json, mode: 'lenient', schema: Search },
    replies: { 200: z.array(Hit) },
    errors: [
      ...found,
      'dimension_mismatch',
      'vector_collection_not_allowed',
      'embedding_unavailable',
      'embedding_dimension_mismatch',
      'hybrid_not_supported',
      'rerank_not_supported',
      'collection_unavailable',
      'driver_unavailable',
    ],
  }),
}
