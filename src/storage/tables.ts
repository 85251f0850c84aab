import type { AuditRecord } from '../contract/audit-record.ts'
import type { Document } from '../contract/documents.ts'
import type { ApiKey } from '../contract/keys.ts'
import type { KnowledgeBase } from '../contract/knowledge.ts'
import type { Scope } from '../contract/scopes.ts'
import type { ChunkingService, EmbeddingService } from '../contract/services.ts'
import type { Workspace } from '../contract/workspaces.ts'
import type { Table } from './rows.ts'

/** A document, with what only the runtime sees of it. */
export interface DocumentRow extends Document {
  /** Unique among documents that ingest made and that did not fail: knowledge base, access domain and content hash. */
  ingestKey: string | null
  /** Unique among the same documents: knowledge base, access domain and file name. */
  nameKey: string | null
}

/** A service of a kind whose routes read no further fields. */
export interface ServiceRow {
  workspaceId: string
  name: string
  [field: string]: unknown
}

type RerankingServiceRow = ServiceRow & { rerankingServiceId: string }
type LlmServiceRow = ServiceRow & { llmServiceId: string }

export interface AgentRow {
  workspaceId: string
  agentId: string
  name: string
  createdAt: string
  llmServiceId: string | null
  [field: string]: unknown
}

/** A key, with what only the runtime sees of it. */
export interface ApiKeyRow extends Omit<ApiKey, 'role' | 'scopes' | 'principalId'> {
  /** Absent from keys that were made before there were scopes. */
  scopes?: Scope[]
  principalId?: string | null
  /** How long it was made to last, in milliseconds, once its end was moved; null is for ever. */
  spanMs?: number | null
  /** `scrypt$<salt>$<digest>` of the whole token. */
  digest: string
}

/** A record, with what only the runtime sees of it. */
export interface AuditRow extends AuditRecord {
  /** Set where it took no credential to cause it: such records are counted apart. */
  refusal?: 1
}

/** A value of the store itself, such as the key that seals cursors. */
export interface SettingRow {
  name: string
  value: string
}

function table<Row extends object>(declaration: Table<Row>): Table<Row> {
  return declaration
}

/** Every control row that the runtime keeps. Rooms read and write rows through these declarations only. */
export const tables = {
  settings: table<SettingRow>({ name: 'settings', key: ['name'], unique: {}, indexes: {} }),
  workspaces: table<Workspace>({
    name: 'workspaces',
    key: ['workspaceId'],
    unique: { name: ['name'] },
    indexes: {
      byCreation: ['createdAt', 'workspaceId'],
      byName: ['name', 'ordinal'],
      byUrl: ['url', 'ordinal'],
      byKind: ['kind', 'ordinal'],
    },
  }),
  chunkingServices: table<ChunkingService>({
    name: 'chunking_services',
    key: ['workspaceId', 'chunkingServiceId'],
    unique: {},
    indexes: { byWorkspace: ['workspaceId', 'ordinal'] },
  }),
  embeddingServices: table<EmbeddingService>({
    name: 'embedding_services',
    key: ['workspaceId', 'embeddingServiceId'],
    unique: {},
    indexes: { byWorkspace: ['workspaceId', 'ordinal'] },
  }),
  rerankingServices: table<RerankingServiceRow>({
    name: 'reranking_services',
    key: ['workspaceId', 'rerankingServiceId'],
    unique: {},
    indexes: { byWorkspace: ['workspaceId', 'ordinal'] },
  }),
  llmServices: table<LlmServiceRow>({
    name: 'llm_services',
    key: ['workspaceId', 'llmServiceId'],
    unique: {},
    indexes: { byWorkspace: ['workspaceId', 'ordinal'] },
  }),
  knowledgeBases: table<KnowledgeBase>({
    name: 'knowledge_bases',
    key: ['workspaceId', 'knowledgeBaseId'],
    unique: { collection: ['workspaceId', 'vectorCollection'] },
    indexes: {
      byWorkspace: ['workspaceId', 'ordinal'],
      byName: ['workspaceId', 'name', 'ordinal'],
      byCollection: ['workspaceId', 'vectorCollection', 'ordinal'],
      byChunkingService: ['workspaceId', 'chunkingServiceId', 'ordinal'],
      byEmbeddingService: ['workspaceId', 'embeddingServiceId', 'ordinal'],
      byRerankingService: ['workspaceId', 'rerankingServiceId', 'ordinal'],
    },
  }),
  documents: table<DocumentRow>({
    name: 'documents',
    key: ['workspaceId', 'knowledgeBaseId', 'documentId'],
    unique: { ingestKey: ['ingestKey'], nameKey: ['nameKey'] },
    indexes: {
      byWorkspace: ['workspaceId', 'ordinal'],
      byKnowledgeBase: ['workspaceId', 'knowledgeBaseId', 'ordinal'],
      byFilename: ['workspaceId', 'knowledgeBaseId', 'sourceFilename', 'ordinal'],
      byIngestKey: ['ingestKey', 'ordinal'],
    },
  }),
  agents: table<AgentRow>({
    name: 'agents',
    key: ['workspaceId', 'agentId'],
    unique: {},
    indexes: {
      byWorkspace: ['workspaceId', 'createdAt', 'agentId'],
      byLlmService: ['workspaceId', 'llmServiceId', 'ordinal'],
    },
  }),
  apiKeys: table<ApiKeyRow>({
    name: 'api_keys',
    key: ['workspaceId', 'keyId'],
    unique: { prefix: ['prefix'] },
    indexes: {
      byWorkspace: ['workspaceId', 'createdAt', 'keyId'],
      byPrefix: ['prefix'],
    },
  }),
  audit: table<AuditRow>({
    name: 'audit',
    key: ['auditId'],
    unique: {},
    indexes: {
      byOrdinal: ['ordinal'],
      byRefusal: ['refusal', 'ordinal'],
      byWorkspace: ['workspaceId', 'ordinal'],
      byTime: ['at', 'ordinal'],
      byActionTime: ['action', 'at', 'ordinal'],
      byWorkspaceTime: ['workspaceId', 'at', 'ordinal'],
      byWorkspaceActionTime: ['workspaceId', 'action', 'at', 'ordinal'],
    },
  }),
} as const
