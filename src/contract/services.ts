import { z } from 'zod'
import { anyCaller, member, needs } from './access.ts'
import { isEndpointUrl } from './endpoint.ts'
import type { ErrorCode } from './errors.ts'
import { secretRef, timestamp } from './fields.ts'
import { limits } from './limits.ts'
import { page, pageQuery } from './page.ts'
import { route } from './route.ts'

const text = z.string().nullable()
const flag = z.boolean().nullable()
const atLeastOne = z.int().positive().nullable()
const atLeastZero = z.int().nonnegative().nullable()

/** An address of a model provider. @see contract 4.5 */
const endpointUrl = z
  .string()
  .refine(isEndpointUrl, 'must be an http(s) URL without user information, of a host that may be called')
  .nullable()

const endpointPath = z
  .string()
  .regex(/^\/[^\u0000-\u001f\u007f]*$/, 'must start with / and hold no control characters')
  .refine(path => !path.split('/').includes('..'), 'must not contain ..')
  .nullable()

/** Fields that services of all kinds share. */
const shared = {
  name: z.string().min(1),
  description: text,
  status: z.enum(['active', 'deprecated', 'experimental']),
  endpointBaseUrl: endpointUrl,
  endpointPath,
  requestTimeoutMs: atLeastOne,
  authType: z.enum(['none', 'api_key', 'oauth2', 'mTLS']),
  credentialRef: secretRef.nullable(),
}
const sharedCreate = {
  ...shared,
  description: text.default(null),
  status: shared.status.default('active'),
  endpointBaseUrl: endpointUrl.default(null),
  endpointPath: endpointPath.default(null),
  requestTimeoutMs: atLeastOne.default(null),
  authType: shared.authType.default('none'),
  credentialRef: shared.credentialRef.default(null),
}

const sortedSet = z.array(z.string()).transform(entries => [...new Set(entries)].sort())
const content = { supportedLanguages: sortedSet, supportedContent: sortedSet }
const contentCreate = { supportedLanguages: sortedSet.default([]), supportedContent: sortedSet.default([]) }

const chunkingFields = {
  ...shared,
  engine: z.string().min(1),
  engineVersion: text,
  strategy: text,
  maxChunkSize: atLeastOne,
  minChunkSize: atLeastZero,
  chunkUnit: text,
  overlapSize: atLeastZero,
  overlapUnit: text,
  preserveStructure: flag,
  language: text,
  readingOrder: text,
  maxPayloadSizeKb: atLeastOne,
  enableOcr: flag,
  extractTables: flag,
  extractFigures: flag,
}
const chunkingCreate = {
  ...chunkingFields,
  ...sharedCreate,
  engineVersion: text.default(null),
  strategy: text.default(null),
  maxChunkSize: atLeastOne.default(null),
  minChunkSize: atLeastZero.default(null),
  chunkUnit: text.default(null),
  overlapSize: atLeastZero.default(null),
  overlapUnit: text.default(null),
  preserveStructure: flag.default(null),
  language: text.default(null),
  readingOrder: text.default(null),
  maxPayloadSizeKb: atLeastOne.default(null),
  enableOcr: flag.default(null),
  extractTables: flag.default(null),
  extractFigures: flag.default(null),
}

const embeddingFields = {
  ...shared,
  provider: z.string().min(1),
  modelName: z.string().min(1),
  embeddingDimension: z.int().positive().max(limits.vectorLength),
  distanceMetric: z.enum(['cosine', 'dot', 'euclidean']),
  maxBatchSize: atLeastOne,
  maxInputTokens: atLeastOne,
  ...content,
}
const embeddingCreate = {
  ...embeddingFields,
  ...sharedCreate,
  ...contentCreate,
  distanceMetric: embeddingFields.distanceMetric.default('cosine'),
  maxBatchSize: atLeastOne.default(null),
  maxInputTokens: atLeastOne.default(null),
}

const stored = { workspaceId: z.uuid(), createdAt: timestamp, updatedAt: timestamp }

export const ChunkingService = z
  .object({ chunkingServiceId: z.uuid(), ...stored, ...chunkingFields })
  .meta({ id: 'ChunkingService' })
export type ChunkingService = z.output<typeof ChunkingService>

export const EmbeddingService = z
  .object({ embeddingServiceId: z.uuid(), ...stored, ...embeddingFields })
  .meta({ id: 'EmbeddingService' })
export type EmbeddingService = z.output<typeof EmbeddingService>

export const Chunker = z
  .object({ id: z.string(), engine: z.string(), strategy: z.string(), description: z.string() })
  .meta({ id: 'Chunker' })

export const ChunkingCreate = z.object({ ...chunkingCreate, chunkingServiceId: z.uuid().optional() })
export const EmbeddingCreate = z.object({ ...embeddingCreate, embeddingServiceId: z.uuid().optional() })
const ChunkingPatch = z.object(chunkingFields).partial()
const EmbeddingPatch = z.object(embeddingFields).partial()

export type ChunkingCreate = z.output<typeof ChunkingCreate>
export type ChunkingCreateInput = z.input<typeof ChunkingCreate>
export type EmbeddingCreate = z.output<typeof EmbeddingCreate>
export type EmbeddingCreateInput = z.input<typeof EmbeddingCreate>

const json = { kind: 'json', mode: 'lenient', limitBytes: limits.jsonBodyBytes } as const
const chunkingErrors = ['workspace_not_found', 'chunking_service_not_found'] as const satisfies ErrorCode[]
const embeddingErrors = ['workspace_not_found', 'embedding_service_not_found'] as const satisfies ErrorCode[]

export const chunkers = {
  list: route({
    method: 'GET',
    path: '/api/v1/chunkers',
    summary: 'List the chunkers that chunking services can name',
    access: anyCaller,
    replies: { 200: z.object({ items: z.array(Chunker) }) },
    errors: [],
  }),
}

export const chunkingServices = {
  list: route({
    method: 'GET',
    path: '/api/v1/workspaces/:workspaceId/chunking-services',
    summary: 'List chunking services',
    access: member('read:content'),
    query: pageQuery,
    replies: { 200: page(ChunkingService) },
    errors: ['workspace_not_found', 'invalid_cursor'],
  }),
  create: route({
    method: 'POST',
    path: '/api/v1/workspaces/:workspaceId/chunking-services',
    summary: 'Create a chunking service',
    access: needs('write:services'),
    body: { ...json, schema: ChunkingCreate },
    replies: { 201: ChunkingService },
    errors: ['workspace_not_found', 'conflict'],
  }),
  show: route({
    method: 'GET',
    path: '/api/v1/workspaces/:workspaceId/chunking-services/:chunkingServiceId',
    summary: 'Show a chunking service',
    access: member('read:content'),
    replies: { 200: ChunkingService },
    errors: chunkingErrors,
  }),
  update: route({
    method: 'PATCH',
    path: '/api/v1/workspaces/:workspaceId/chunking-services/:chunkingServiceId',
    summary: 'Change a chunking service',
    access: needs('write:services'),
    body: { ...json, schema: ChunkingPatch },
    replies: { 200: ChunkingService },
    errors: chunkingErrors,
  }),
  delete: route({
    method: 'DELETE',
    path: '/api/v1/workspaces/:workspaceId/chunking-services/:chunkingServiceId',
    summary: 'Delete a chunking service that no knowledge base binds',
    access: needs('write:services'),
    replies: { 204: null },
    errors: [...chunkingErrors, 'chunking_service_in_use'],
  }),
}

export const embeddingServices = {
  list: route({
    method: 'GET',
    path: '/api/v1/workspaces/:workspaceId/embedding-services',
    summary: 'List embedding services',
    access: member('read:content'),
    query: pageQuery,
    replies: { 200: page(EmbeddingService) },
    errors: ['workspace_not_found', 'invalid_cursor'],
  }),
  create: route({
    method: 'POST',
    path: '/api/v1/workspaces/:workspaceId/embedding-services',
    summary: 'Create an embedding service',
    access: needs('write:services'),
    body: { ...json, schema: EmbeddingCreate },
    replies: { 201: EmbeddingService },
    errors: ['workspace_not_found', 'conflict'],
  }),
  show: route({
    method: 'GET',
    path: '/api/v1/workspaces/:workspaceId/embedding-services/:embeddingServiceId',
    summary: 'Show an embedding service',
    access: member('read:content'),
    replies: { 200: EmbeddingService },
    errors: embeddingErrors,
  }),
  update: route({
    method: 'PATCH',
    path: '/api/v1/workspaces/:workspaceId/embedding-services/:embeddingServiceId',
    summary:
      'Change an embedding service; what stored vectors depend on is fixed while a knowledge base binds it',
    access: needs('write:services'),
    body: { ...json, schema: EmbeddingPatch },
    replies: { 200: EmbeddingService },
    errors: [...embeddingErrors, 'embedding_service_in_use'],
  }),
  delete: route({
    method: 'DELETE',
    path: '/api/v1/workspaces/:workspaceId/embedding-services/:embeddingServiceId',
    summary: 'Delete an embedding service that no knowledge base binds',
    access: needs('write:services'),
    replies: { 204: null },
    errors: [...embeddingErrors, 'embedding_service_in_use'],
  }),
}
