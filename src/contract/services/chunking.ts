import { z } from 'zod'
import { anyCaller, member, needs } from '../access.ts'
import type { ErrorCode } from '../errors.ts'
import { pageOfItems, pageQuery } from '../page.ts'
import { route } from '../route.ts'
import {
  nullableFlag,
  nullableNonnegative,
  nullablePositive,
  nullableText,
  serviceBody,
  serviceSystemFields,
  sharedServiceCreate,
  sharedServiceFields,
  sharedServicePatch,
} from './fields.ts'

const fields = {
  ...sharedServiceFields,
  engine: z.string().min(1),
  engineVersion: nullableText,
  strategy: nullableText,
  maxChunkSize: nullablePositive,
  minChunkSize: nullableNonnegative,
  chunkUnit: nullableText,
  overlapSize: nullableNonnegative,
  overlapUnit: nullableText,
  preserveStructure: nullableFlag,
  language: nullableText,
  readingOrder: nullableText,
  maxPayloadSizeKb: nullablePositive,
  enableOcr: nullableFlag,
  extractTables: nullableFlag,
  extractFigures: nullableFlag,
}
const create = {
  ...fields,
  ...sharedServiceCreate,
  engineVersion: nullableText.default(null),
  strategy: nullableText.default(null),
  maxChunkSize: nullablePositive.default(null),
  minChunkSize: nullableNonnegative.default(null),
  chunkUnit: nullableText.default(null),
  overlapSize: nullableNonnegative.default(null),
  overlapUnit: nullableText.default(null),
  preserveStructure: nullableFlag.default(null),
  language: nullableText.default(null),
  readingOrder: nullableText.default(null),
  maxPayloadSizeKb: nullablePositive.default(null),
  enableOcr: nullableFlag.default(null),
  extractTables: nullableFlag.default(null),
  extractFigures: nullableFlag.default(null),
}

export const ChunkingService = z
  .object({ chunkingServiceId: z.uuid(), ...serviceSystemFields, ...fields })
  .meta({ id: 'ChunkingService' })
export type ChunkingService = z.output<typeof ChunkingService>

export const ChunkingCreate = z.object({ ...create, chunkingServiceId: z.uuid().optional() })
export type ChunkingCreate = z.output<typeof ChunkingCreate>
export type ChunkingCreateInput = z.input<typeof ChunkingCreate>
const ChunkingPatch = z.object({ ...fields, ...sharedServicePatch }).partial()

export const ChunkerInfo = z
  .object({ id: z.string(), engine: z.string(), strategy: z.string(), description: z.string() })
  .meta({ id: 'Chunker' })

export const chunkerRoutes = {
  list: route({
    method: 'GET',
    path: '/api/v1/chunkers',
    summary: 'List chunkers',
    access: anyCaller,
    replies: { 200: z.object({ items: z.array(ChunkerInfo) }) },
    errors: [],
  }),
}

const errors = ['workspace_not_found', 'chunking_service_not_found'] as const satisfies ErrorCode[]

export const chunkingServices = {
  list: route({
    method: 'GET',
    path: '/api/v1/workspaces/:workspaceId/chunking-services',
    summary: 'List chunking services',
    access: member('read:content'),
    query: pageQuery,
    replies: { 200: pageOfItems(ChunkingService) },
    errors: ['workspace_not_found', 'invalid_cursor'],
  }),
  create: route({
    method: 'POST',
    path: '/api/v1/workspaces/:workspaceId/chunking-services',
    summary: 'Create a chunking service',
    access: needs('write:services'),
    body: { ...serviceBody, schema: ChunkingCreate },
    replies: { 201: ChunkingService },
    errors: ['workspace_not_found', 'conflict'],
  }),
  show: route({
    method: 'GET',
    path: '/api/v1/workspaces/:workspaceId/chunking-services/:chunkingServiceId',
    summary: 'Show a chunking service',
    access: member('read:content'),
    replies: { 200: ChunkingService },
    errors,
  }),
  update: route({
    method: 'PATCH',
    path: '/api/v1/workspaces/:workspaceId/chunking-services/:chunkingServiceId',
    summary: 'Change a chunking service',
    access: needs('write:services'),
    body: { ...serviceBody, schema: ChunkingPatch },
    replies: { 200: ChunkingService },
    errors: errors,
  }),
  delete: route({
    method: 'DELETE',
    path: '/api/v1/workspaces/:workspaceId/chunking-services/:chunkingServiceId',
    summary: 'Delete a chunking service',
    access: needs('write:services'),
    replies: { 204: null },
    errors: [...errors, 'chunking_service_in_use'],
  }),
}
