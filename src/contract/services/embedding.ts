import { z } from 'zod'
import { member, needs } from '../access.ts'
import type { ErrorCode } from '../errors.ts'
import { limits } from '../limits.ts'
import { pageOfItems, pageQuery } from '../page.ts'
import { route } from '../route.ts'
import {
  modelContentCreate,
  modelContentFields,
  nullablePositive,
  problemQuery,
  serviceBody,
  serviceSystemFields,
  sharedServiceCreate,
  sharedServiceFields,
  sharedServicePatch,
  withProblem,
} from './fields.ts'

const fields = {
  ...sharedServiceFields,
  provider: z.string().min(1),
  modelName: z.string().min(1),
  embeddingDimension: z.int().positive().max(limits.vectorLength),
  distanceMetric: z.enum(['cosine', 'dot', 'euclidean']),
  maxBatchSize: nullablePositive,
  maxInputTokens: nullablePositive,
  ...modelContentFields,
}
const create = {
  ...fields,
  ...sharedServiceCreate,
  ...modelContentCreate,
  distanceMetric: fields.distanceMetric.default('cosine'),
  maxBatchSize: nullablePositive.default(null),
  maxInputTokens: nullablePositive.default(null),
}

export const EmbeddingService = z
  .object({ embeddingServiceId: z.uuid(), ...serviceSystemFields, ...fields })
  .meta({ id: 'EmbeddingService' })
export type EmbeddingService = z.output<typeof EmbeddingService>

export const EmbeddingCreate = z.object({ ...create, embeddingServiceId: z.uuid().optional() })
export type EmbeddingCreate = z.output<typeof EmbeddingCreate>
export type EmbeddingCreateInput = z.input<typeof EmbeddingCreate>
const EmbeddingPatch = z.object({ ...fields, ...sharedServicePatch }).partial()

const errors = ['workspace_not_found', 'embedding_service_not_found'] as const satisfies ErrorCode[]

export const embeddingServices = {
  list: route({
    method: 'GET',
    path: '/api/v1/workspaces/:workspaceId/embedding-services',
    summary: 'List embedding services',
    access: member('read:content'),
    query: pageQuery,
    replies: { 200: pageOfItems(EmbeddingService) },
    errors: ['workspace_not_found', 'invalid_cursor'],
  }),
  create: route({
    method: 'POST',
    path: '/api/v1/workspaces/:workspaceId/embedding-services',
    summary: 'Create an embedding service',
    access: needs('write:services'),
    body: { ...serviceBody, schema: EmbeddingCreate },
    replies: { 201: EmbeddingService },
    errors: ['workspace_not_found', 'conflict'],
  }),
  show: route({
    method: 'GET',
    path: '/api/v1/workspaces/:workspaceId/embedding-services/:embeddingServiceId',
    summary: 'Show an embedding service',
    access: member('read:content'),
    query: problemQuery,
    replies: { 200: EmbeddingService.extend(withProblem) },
    errors,
  }),
  update: route({
    method: 'PATCH',
    path: '/api/v1/workspaces/:workspaceId/embedding-services/:embeddingServiceId',
    summary: 'Change an embedding service',
    access: needs('write:services'),
    body: { ...serviceBody, schema: EmbeddingPatch },
    replies: { 200: EmbeddingService },
    errors: [...errors, 'embedding_service_in_use'],
  }),
  delete: route({
    method: 'DELETE',
    path: '/api/v1/workspaces/:workspaceId/embedding-services/:embeddingServiceId',
    summary: 'Delete an embedding service',
    access: needs('write:services'),
    replies: { 204: null },
    errors: [...errors, 'embedding_service_in_use'],
  }),
}
