import { z } from 'zod'
import { member, needs } from '../access.ts'
import type { ErrorCode } from '../errors.ts'
import { pageOfItems, pageQuery } from '../page.ts'
import { route } from '../route.ts'
import {
  modelContentCreate,
  modelContentFields,
  nullableFlag,
  nullablePositive,
  nullableText,
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
  engine: nullableText,
  modelName: z.string().min(1),
  modelVersion: nullableText,
  maxCandidates: nullablePositive,
  scoringStrategy: nullableText,
  scoreNormalized: nullableFlag,
  returnScores: nullableFlag,
  maxBatchSize: nullablePositive,
  ...modelContentFields,
}
const create = {
  ...fields,
  ...sharedServiceCreate,
  ...modelContentCreate,
  engine: nullableText.default(null),
  modelVersion: nullableText.default(null),
  maxCandidates: nullablePositive.default(null),
  scoringStrategy: nullableText.default(null),
  scoreNormalized: nullableFlag.default(null),
  returnScores: nullableFlag.default(null),
  maxBatchSize: nullablePositive.default(null),
}

export const RerankingService = z
  .object({ rerankingServiceId: z.uuid(), ...serviceSystemFields, ...fields })
  .meta({ id: 'RerankingService' })
export type RerankingService = z.output<typeof RerankingService>

export const RerankingCreate = z.object({ ...create, rerankingServiceId: z.uuid().optional() })
export type RerankingCreate = z.output<typeof RerankingCreate>
const RerankingPatch = z.object({ ...fields, ...sharedServicePatch }).partial()

const errors = ['workspace_not_found', 'reranking_service_not_found'] as const satisfies ErrorCode[]

export const rerankingServices = {
  list: route({
    method: 'GET',
    path: '/api/v1/workspaces/:workspaceId/reranking-services',
    summary: 'List reranking services',
    access: member('read:content'),
    query: pageQuery,
    replies: { 200: pageOfItems(RerankingService) },
    errors: ['workspace_not_found', 'invalid_cursor'],
  }),
  create: route({
    method: 'POST',
    path: '/api/v1/workspaces/:workspaceId/reranking-services',
    summary: 'Create a reranking service',
    access: needs('write:services'),
    body: { ...serviceBody, schema: RerankingCreate },
    replies: { 201: RerankingService },
    errors: ['workspace_not_found', 'conflict'],
  }),
  show: route({
    method: 'GET',
    path: '/api/v1/workspaces/:workspaceId/reranking-services/:rerankingServiceId',
    summary: 'Show a reranking service',
    access: member('read:content'),
    query: problemQuery,
    replies: { 200: RerankingService.extend(withProblem) },
    errors,
  }),
  update: route({
    method: 'PATCH',
    path: '/api/v1/workspaces/:workspaceId/reranking-services/:rerankingServiceId',
    summary: 'Change a reranking service',
    access: needs('write:services'),
    body: { ...serviceBody, schema: RerankingPatch },
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
