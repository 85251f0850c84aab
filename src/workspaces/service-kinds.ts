import { newId } from '../base/id.ts'
import { type ErrorCode, WbError } from '../contract/errors.ts'
import type {
  ChunkingCreate,
  ChunkingService,
  EmbeddingCreate,
  EmbeddingService,
  LlmCreate,
  LlmService,
  RerankingCreate,
  RerankingService,
} from '../contract/services.ts'
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

/** Fields that the runtime sets on services of any kind. */
export type ServiceSystemFields = Pick<AnyService, 'workspaceId' | 'createdAt' | 'updatedAt'>

/** A table whose rows refer to services of one kind, and its index by workspace and service. */
interface ServiceUsage {
  readonly noun: string
  readonly table: AnyTable
  readonly index: string
}

/** Properties of one kind of service. `Create` is the type of the fields for a new service. */
export interface ServiceKind<Row extends AnyService, Create> {
  readonly noun: string
  readonly table: RowTable<Row>
  /** Creates a service, with a new ID if the fields do not contain one. */
  compose(fields: Create, systemFields: ServiceSystemFields): Row
  idOf(row: Row): string
  readonly usedBy: readonly ServiceUsage[]
  readonly notFound: ErrorCode
  readonly inUse: ErrorCode
  /** Fields that stored content depends on. They cannot change while the service is in use. */
  readonly fixedWhileInUse: readonly ColumnName<Row>[]
}

export function serviceNotFound(
  kind: Pick<ServiceKind<never, never>, 'noun' | 'notFound'>,
  id: string,
): WbError {
  return new WbError(kind.notFound, `${kind.noun} '${id}' not found`)
}

function byKnowledgeBases(index: string): ServiceUsage {
  return { noun: 'a knowledge base', table: tables.knowledgeBases, index }
}

function byAgents(index: string): ServiceUsage {
  return { noun: 'an agent', table: tables.agents, index }
}

/** Chunking services. All fields can change: only new documents are chunked with the new settings. */
export const chunkingKind: ServiceKind<ChunkingService, ChunkingCreate> = {
  noun: 'chunking service',
  table: tables.chunkingServices,
  compose: ({ chunkingServiceId = newId(), ...fields }, systemFields) => ({
    ...fields,
    ...systemFields,
    chunkingServiceId,
  }),
  idOf: row => row.chunkingServiceId,
  usedBy: [byKnowledgeBases('byChunkingService')],
  notFound: 'chunking_service_not_found',
  inUse: 'chunking_service_in_use',
  fixedWhileInUse: [],
}

export const embeddingKind: ServiceKind<EmbeddingService, EmbeddingCreate> = {
  noun: 'embedding service',
  table: tables.embeddingServices,
  compose: ({ embeddingServiceId = newId(), ...fields }, systemFields) => ({
    ...fields,
    ...systemFields,
    embeddingServiceId,
  }),
  idOf: row => row.embeddingServiceId,
  usedBy: [byKnowledgeBases('byEmbeddingService')],
  notFound: 'embedding_service_not_found',
  inUse: 'embedding_service_in_use',
  fixedWhileInUse: ['provider', 'modelName', 'embeddingDimension', 'distanceMetric'],
}

export const rerankingKind: ServiceKind<RerankingService, RerankingCreate> = {
  noun: 'reranking service',
  table: tables.rerankingServices,
  compose: ({ rerankingServiceId = newId(), ...fields }, systemFields) => ({
    ...fields,
    ...systemFields,
    rerankingServiceId,
  }),
  idOf: row => row.rerankingServiceId,
  usedBy: [byKnowledgeBases('byRerankingService'), byAgents('byRerankingService')],
  notFound: 'reranking_service_not_found',
  inUse: 'reranking_service_in_use',
  fixedWhileInUse: [],
}

export const llmKind: ServiceKind<LlmService, LlmCreate> = {
  noun: 'LLM service',
  table: tables.llmServices,
  compose: ({ llmServiceId = newId(), ...fields }, systemFields) => ({
    ...fields,
    ...systemFields,
    llmServiceId,
  }),
  idOf: row => row.llmServiceId,
  usedBy: [byAgents('byLlmService')],
  notFound: 'llm_service_not_found',
  inUse: 'llm_service_in_use',
  fixedWhileInUse: [],
}
