import { type ErrorCode, WbError } from '../contract/errors.ts'
import type { ChunkingService, EmbeddingService, LlmService, RerankingService } from '../contract/services.ts'
import type { AnyTable, ColumnName, RowTable } from '../storage/rows.ts'
import { tables } from '../storage/tables.ts'

/** Fields that all services have. */
export interface AnyService {
  readonly workspaceId: string
  readonly name: string
  readonly endpointBaseUrl: string | null
  readonly createdAt: string
  readonly updatedAt: string
}

/** A table whose rows refer to services of one kind, and its index by workspace and service. */
interface ServiceUsage {
  readonly noun: string
  readonly table: AnyTable
  readonly index: string
}

/** Properties of one kind of service. */
export interface ServiceKind<Row extends AnyService> {
  readonly noun: string
  readonly table: RowTable<Row>
  readonly idField: ColumnName<Row>
  readonly usedBy: readonly ServiceUsage[]
  readonly notFound: ErrorCode
  readonly inUse: ErrorCode
  /** Fields that stored content depends on. They cannot change while the service is in use. */
  readonly fixedWhileInUse: readonly ColumnName<Row>[]
}

export function serviceNotFound(kind: Pick<ServiceKind<never>, 'noun' | 'notFound'>, id: string): WbError {
  return new WbError(kind.notFound, `${kind.noun} '${id}' not found`)
}

function byKnowledgeBases(index: string): ServiceUsage {
  return { noun: 'a knowledge base', table: tables.knowledgeBases, index }
}

function byAgents(index: string): ServiceUsage {
  return { noun: 'an agent', table: tables.agents, index }
}

/** Chunking services. All fields can change: only new documents are chunked with the new settings. */
export const chunkingKind: ServiceKind<ChunkingService> = {
  noun: 'chunking service',
  table: tables.chunkingServices,
  idField: 'chunkingServiceId',
  usedBy: [byKnowledgeBases('byChunkingService')],
  notFound: 'chunking_service_not_found',
  inUse: 'chunking_service_in_use',
  fixedWhileInUse: [],
}

export const embeddingKind: ServiceKind<EmbeddingService> = {
  noun: 'embedding service',
  table: tables.embeddingServices,
  idField: 'embeddingServiceId',
  usedBy: [byKnowledgeBases('byEmbeddingService')],
  notFound: 'embedding_service_not_found',
  inUse: 'embedding_service_in_use',
  fixedWhileInUse: ['provider', 'modelName', 'embeddingDimension', 'distanceMetric'],
}

export const rerankingKind: ServiceKind<RerankingService> = {
  noun: 'reranking service',
  table: tables.rerankingServices,
  idField: 'rerankingServiceId',
  usedBy: [byKnowledgeBases('byRerankingService'), byAgents('byRerankingService')],
  notFound: 'reranking_service_not_found',
  inUse: 'reranking_service_in_use',
  fixedWhileInUse: [],
}

export const llmKind: ServiceKind<LlmService> = {
  noun: 'LLM service',
  table: tables.llmServices,
  idField: 'llmServiceId',
  usedBy: [byAgents('byLlmService')],
  notFound: 'llm_service_not_found',
  inUse: 'llm_service_in_use',
  fixedWhileInUse: [],
}
