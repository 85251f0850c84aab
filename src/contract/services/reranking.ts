import { z } from 'zod'
import { member, needs } from '../access.ts'
import type { ErrorCode } from '../errors.ts'
import { page, pageQuery } from '../page.ts'
import { route } from '../route.ts'
import {
  atLeastOne,
  content,
  contentCreate,
  flag,
  json,
  shared,
  sharedCreate,
  sharedPatch,
  stamps,
  text,
} from './fields.ts'

const fields = {
  ...shared,
  provider: z.string().min(1),
  engine: text,
  modelName: z.string().min(1),
  modelVersion: text,
  maxCandidates: atLeastOne,
  scoringStrategy: text,
  scoreNormalized: flag,
  returnScores: flag,
  maxBatchSize: atLeastOne,
  ...content,
}
const create = {
  ...fields,
  ...sharedCreate,
  ...contentCreate,
  engine: text.default(null),
  modelVersion: text.default(null),
  maxCandidates: atLeastOne.default(null),
  scoringStrategy: text.default(null),
  scoreNormalized: flag.default(null),
  returnScores: flag.default(null),
  maxBatchSize: atLeastOne.default(null),
}

export const RerankingService = z
  .object({ rerankingServiceId: z.uuid(), ...stamps, ...fields })
  .meta({ id: 'RerankingService' })
export type RerankingService = z.output<typeof RerankingService>

export const RerankingCreate = z.object({ ...create, rerankingServiceId: z.uuid().optional() })
export type RerankingCreate = z.output<typeof RerankingCreate>
const RerankingPatch = z.object({ ...fields, ...sharedPatch }).partial()

const errors = ['workspace_not_found', 'reranking_service_not_found'] as const satisfies ErrorCode[]

export const rerankingServices = {
  list: route({
    method: 'GET',
    path: '/api/v1/workspaces/:workspaceId/reranking-services',
    summary: 'List reranking services',
    access: member('read:content'),
    query: pageQuery,
    replies: { 200: page(RerankingService) },
    errors: ['workspace_not_found', 'invalid_cursor'],
  }),
  create: route({
    method: 'POST',
    path: '/api/v1/workspaces/:workspaceId/reranking-services',
    summary: 'Create a reranking service',
    access: needs('write:services'),
    body: { ...json, schema: RerankingCreate },
    replies: { 201: RerankingService },
    errors: ['workspace_not_found', 'conflict'],
  }),
  show: route({
    method: 'GET',
    path: '/api/v1/workspaces/:workspaceId/reranking-services/:rerankingServiceId',
    summary: 'Show a reranking service',
    access: member('read:content'),
    replies: { 200: RerankingService },
    errors,
  }),
  update: route({
    method: 'PATCH',
    path: '/api/v1/workspaces/:workspaceId/reranking-services/:rerankingServiceId',
    summary: 'Change a reranking service',
    access: needs('write:services'),
    body: { ...json, schema: RerankingPatch },
    replies: { 200: RerankingService },
    errors: errors,
  }),
  delete: route({
    method: 'DELETE',
    path: '/api/v1/workspaces/:workspaceId/reranking-services/:rerankingServiceId',
    summary: 'Delete a reranking service',
    access: needs('write:services'),
    replies: { 204: null },
    errors: [...errors, 'reranking_service_in_use'],
  }),
}
