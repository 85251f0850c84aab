import { z } from 'zod'
import { anyCaller, member, needs } from '../access.ts'
import type { ErrorCode } from '../errors.ts'
import { page, pageQuery } from '../page.ts'
import { route } from '../route.ts'
import {
  atLeastOne,
  atLeastZero,
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
const create = {
  ...fields,
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

export const ChunkingService = z
  .object({ chunkingServiceId: z.uuid(), ...stamps, ...fields })
  .meta({ id: 'ChunkingService' })
export type ChunkingService = z.output<typeof ChunkingService>

export const ChunkingCreate = z.object({ ...create, chunkingServiceId: z.uuid().optional() })
export type ChunkingCreate = z.output<typeof ChunkingCreate>
export type ChunkingCreateInput = z.input<typeof ChunkingCreate>
const ChunkingPatch = z.object({ ...fields, ...sharedPatch }).partial()

export const Chunker = z
  .object({ id: z.string(), engine: z.string(), strategy: z.string(), description: z.string() })
  .meta({ id: 'Chunker' })

export const chunkers = {
  list: route({
    method: 'GET',
    path: '/api/v1/chunkers',
    summary: 'List chunkers',
    access: anyCaller,
    replies: { 200: z.object({ items: z.array(Chunker) }) },
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
    errors,
  }),
  update: route({
    method: 'PATCH',
    path: '/api/v1/workspaces/:workspaceId/chunking-services/:chunkingServiceId',
    summary: 'Change a chunking service',
    access: needs('write:services'),
    body: { ...json, schema: ChunkingPatch },
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
