import type { Agent } from '../contract/agents.ts'
import type { Attachment, AttachmentText } from '../contract/attachments.ts'
import type { AuditRecord } from '../contract/audit-record.ts'
import type { Conversation, Message } from '../contract/conversations.ts'
import type { Document, Ingest } from '../contract/documents.ts'
import type { KnowledgeFilter } from '../contract/filters.ts'
import type { ImageInput } from '../contract/images.ts'
import type { Job } from '../contract/jobs.ts'
import type { ApiKey } from '../contract/keys.ts'
import type { KnowledgeBase } from '../contract/knowledge.ts'
import type { McpServer } from '../contract/mcp-servers.ts'
import type { PolicyDecision } from '../contract/policy.ts'
import type { Principal } from '../contract/principals.ts'
import type { SecretRelease } from '../contract/releases.ts'
import type { Scope } from '../contract/scopes.ts'
import type { ChunkingService, EmbeddingService, LlmService, RerankingService } from '../contract/services.ts'
import type { Workspace } from '../contract/workspaces.ts'
import type { RowTable } from './rows.ts'

/** A document, with its internal fields. */
export interface DocumentRow extends Document {
  /** Unique key of an ingested document that did not fail: knowledge base, access domain and content hash. */
  ingestKey: string | null
  /** Unique key of such a document: knowledge base, access domain and file name. */
  nameKey: string | null
  /** ID of the job that ingests the document; null or absent when it has ended. */
  jobId?: string | null
}

/** A workspace, with its internal fields. */
export interface WorkspaceRow extends Workspace {
  /** Unique key from URL and keyspace; null without a URL. */
  databaseKey?: string | null
}

/** A job, with its internal fields. */
export interface JobRow extends Job {
  /** ID of the process that works on the job. */
  leaseOwner: string | null
  /** End of the lease, as a timestamp; then other processes may take the job over. */
  leaseUntil: string | null
  /** Number of processes that died while working on the job since its last progress. */
  deaths?: number
  /** End of the job, as a timestamp; null while it is pending or running. */
  endedAt: string | null
}

/** Input of a job; deleted when the job ends. */
export interface JobInputRow {
  workspaceId: string
  knowledgeBaseId: string
  jobId: string
  body: Ingest
}

/** Vectors that a job has computed but not yet stored with the document; deleted when the job ends. */
export interface JobBatchRow {
  workspaceId: string
  knowledgeBaseId: string
  jobId: string
  /** Index of the first chunk. */
  start: number
  /** Hash of the model and the embedded texts. */
  source: string
  /** Vectors, one per chunk: 32-bit floats, little-endian, in base64. */
  vectors: string[]
}

/** A conversation, with its owner and internal fields. */
export interface ConversationRow extends Conversation {
  /** Principal that began it; null if the caller was not a principal. */
  ownerPrincipalId: string | null
  /** Name of the subject that began it; null for an anonymous one, absent on old rows. */
  createdBy?: string | null
  /**
   * Tools that may run without asking here, by name of the subject that approved them and by ID: the hash of the
   * approved description.
   */
  approvals?: Record<string, Record<string, string>>
  /**
   * Time of the question in whose turn text of documents or tools was first read. All later answers may derive
   * from it. Null or absent if no such text was read.
   */
  untrustedSince?: string | null
  /** Number and length of its attachments; absent before the first one. */
  attached?: { count: number; textChars: number }
}

/** Text of an attachment, apart from its other fields so that lists do not read it. */
export interface AttachmentTextRow extends AttachmentText {
  workspaceId: string
  conversationId: string
  attachmentId: string
}

/** A message, with its internal fields. */
export interface MessageRow extends Omit<Message, 'chatId' | 'role'> {
  conversationId: string
  role: Message['role'] | 'tool'
  authorId: string | null
  toolId: string | null
  toolCallPayload: object | null
  toolResponse: object | null
  /** First version of the question, on messages of the user that have several versions. */
  questionId?: string
}

/** A message of a version of a question that is not in the conversation now. */
export interface MessageVersionRow extends MessageRow {
  /** Message of the user that the version begins with. */
  versionId: string
  /** On the first message of a version: `untrustedSince` of the version. */
  untrustedSince?: string | null
}

/** An image of a message. The message lists its images without their data. */
export interface MessageImageRow extends ImageInput {
  workspaceId: string
  conversationId: string
  messageId: string
  imageIndex: number
  createdAt: string
}

/** Accepted version of a tool of an MCP server. */
export interface ReviewedTool {
  /** Hash of name, description and schema. */
  hash: string
  description: string
}

/** An MCP server, with its accepted tools. */
export interface McpServerRow extends McpServer {
  /** Accepted tools by name; null until the server first answers. */
  reviewedTools: Record<string, ReviewedTool> | null
}

/** The sign-in of one subject to an MCP server. */
export interface McpSignInRow {
  workspaceId: string
  mcpServerId: string
  /** Name of the subject that signed in. */
  subject: string
  /** Time of the sign-in, as a timestamp. */
  createdAt: string
  /** Scopes that were granted; null if the authorization server did not name them. */
  scopes: string[] | null
  /** End of the access token, as a timestamp; null if the authorization server did not say. */
  expiresAt: string | null
  canRefresh: boolean
  /** Tokens and OAuth client, readable by the runtime only. */
  sealed: string
  /** End of the lease of the process that uses the refresh token, as a timestamp. */
  refreshingUntil: string | null
}

/** An API key, with its internal fields. */
export interface ApiKeyRow extends Omit<ApiKey, 'role' | 'scopes' | 'principalId'> {
  /** Absent from keys that were created before scopes existed. */
  scopes?: Scope[]
  principalId?: string | null
  /** Original lifetime in milliseconds, set when the expiry was changed; null for unlimited. */
  spanMs?: number | null
  /** `scrypt$<salt>$<digest>` of the whole token. */
  digest: string
}

/** An audit record, with its internal fields. */
export interface AuditRow extends AuditRecord {
  /** Set if a caller without a credential caused the record. Such records have a separate limit. */
  refusal?: 1
}

/** A value of the store itself, such as the key that seals cursors. */
export interface SettingRow {
  name: string
  value: string
}

function declareTable<Row extends object>(declaration: RowTable<Row>): RowTable<Row> {
  return declaration
}

/** All tables of control rows. Rooms read and write rows only through these declarations. */
export const tables = {
  settings: declareTable<SettingRow>({ name: 'settings', key: ['name'], unique: {}, indexes: {} }),
  workspaces: declareTable<WorkspaceRow>({
    name: 'workspaces',
    key: ['workspaceId'],
    unique: { name: ['name'], database: ['databaseKey'] },
    indexes: {
      byCreation: ['createdAt', 'workspaceId'],
      byName: ['name', 'ordinal'],
      byKind: ['kind', 'ordinal'],
    },
  }),
  chunkingServices: declareTable<ChunkingService>({
    name: 'chunking_services',
    key: ['workspaceId', 'chunkingServiceId'],
    unique: {},
    indexes: { byWorkspace: ['workspaceId', 'ordinal'] },
  }),
  embeddingServices: declareTable<EmbeddingService>({
    name: 'embedding_services',
    key: ['workspaceId', 'embeddingServiceId'],
    unique: {},
    indexes: { byWorkspace: ['workspaceId', 'ordinal'] },
  }),
  rerankingServices: declareTable<RerankingService>({
    name: 'reranking_services',
    key: ['workspaceId', 'rerankingServiceId'],
    unique: {},
    indexes: { byWorkspace: ['workspaceId', 'ordinal'] },
  }),
  llmServices: declareTable<LlmService>({
    name: 'llm_services',
    key: ['workspaceId', 'llmServiceId'],
    unique: {},
    indexes: { byWorkspace: ['workspaceId', 'ordinal'] },
  }),
  knowledgeBases: declareTable<KnowledgeBase>({
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
  documents: declareTable<DocumentRow>({
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
  agents: declareTable<Agent>({
    name: 'agents',
    key: ['workspaceId', 'agentId'],
    unique: {},
    indexes: {
      byWorkspace: ['workspaceId', 'createdAt', 'agentId'],
      byName: ['workspaceId', 'name', 'ordinal'],
      byLlmService: ['workspaceId', 'llmServiceId', 'ordinal'],
      byRerankingService: ['workspaceId', 'rerankingServiceId', 'ordinal'],
    },
  }),
  conversations: declareTable<ConversationRow>({
    name: 'conversations',
    key: ['workspaceId', 'conversationId'],
    unique: {},
    indexes: {
      byWorkspace: ['workspaceId', 'createdAt', 'conversationId'],
      byAgent: ['workspaceId', 'agentId', 'createdAt', 'conversationId'],
      byOwner: ['workspaceId', 'ownerPrincipalId', 'createdAt', 'conversationId'],
      byAgentOwner: ['workspaceId', 'agentId', 'ownerPrincipalId', 'createdAt', 'conversationId'],
      byActivity: ['workspaceId', 'lastActivityAt', 'conversationId'],
      byAgentActivity: ['workspaceId', 'agentId', 'lastActivityAt', 'conversationId'],
      byOwnerActivity: ['workspaceId', 'ownerPrincipalId', 'lastActivityAt', 'conversationId'],
      byAgentOwnerActivity: [
        'workspaceId',
        'agentId',
        'ownerPrincipalId',
        'lastActivityAt',
        'conversationId',
      ],
    },
  }),
  messages: declareTable<MessageRow>({
    name: 'messages',
    key: ['workspaceId', 'conversationId', 'messageId'],
    unique: {},
    indexes: {
      byWorkspace: ['workspaceId', 'ordinal'],
      byConversation: ['workspaceId', 'conversationId', 'messageTs', 'messageId'],
      byQuestion: ['workspaceId', 'conversationId', 'questionId', 'messageTs', 'messageId'],
    },
  }),
  messageVersions: declareTable<MessageVersionRow>({
    name: 'message_versions',
    key: ['workspaceId', 'conversationId', 'messageId'],
    unique: {},
    indexes: {
      byWorkspace: ['workspaceId', 'ordinal'],
      byVersion: ['workspaceId', 'conversationId', 'versionId', 'messageTs', 'messageId'],
      byQuestion: ['workspaceId', 'conversationId', 'questionId', 'messageTs', 'messageId'],
    },
  }),
  messageImages: declareTable<MessageImageRow>({
    name: 'message_images',
    key: ['workspaceId', 'conversationId', 'messageId', 'imageIndex'],
    unique: {},
    indexes: {
      byWorkspace: ['workspaceId', 'ordinal'],
      byMessage: ['workspaceId', 'conversationId', 'messageId', 'imageIndex'],
    },
  }),
  attachments: declareTable<Attachment>({
    name: 'attachments',
    key: ['workspaceId', 'conversationId', 'attachmentId'],
    unique: {},
    indexes: {
      byWorkspace: ['workspaceId', 'ordinal'],
      byConversation: ['workspaceId', 'conversationId', 'ordinal'],
    },
  }),
  attachmentTexts: declareTable<AttachmentTextRow>({
    name: 'attachment_texts',
    key: ['workspaceId', 'conversationId', 'attachmentId'],
    unique: {},
    indexes: {
      byWorkspace: ['workspaceId', 'ordinal'],
      byConversation: ['workspaceId', 'conversationId', 'ordinal'],
    },
  }),
  mcpServers: declareTable<McpServerRow>({
    name: 'mcp_servers',
    key: ['workspaceId', 'mcpServerId'],
    unique: {},
    indexes: { byWorkspace: ['workspaceId', 'mcpServerId'] },
  }),
  mcpSignIns: declareTable<McpSignInRow>({
    name: 'mcp_sign_ins',
    key: ['workspaceId', 'mcpServerId', 'subject'],
    unique: {},
    indexes: {
      byWorkspace: ['workspaceId', 'ordinal'],
      byServer: ['workspaceId', 'mcpServerId', 'subject'],
    },
  }),
  principals: declareTable<Principal>({
    name: 'principals',
    key: ['workspaceId', 'principalId'],
    unique: {},
    indexes: { byWorkspace: ['workspaceId', 'principalId'] },
  }),
  policyAudit: declareTable<PolicyDecision>({
    name: 'policy_audit',
    key: ['workspaceId', 'decisionId'],
    unique: {},
    indexes: {
      byWorkspace: ['workspaceId', 'ordinal'],
      byDay: ['workspaceId', 'auditDay', 'ordinal'],
      byPrincipal: ['workspaceId', 'principalId', 'ordinal'],
      byKnowledgeBase: ['workspaceId', 'knowledgeBaseId', 'ordinal'],
    },
  }),
  secretReleases: declareTable<SecretRelease>({
    name: 'secret_releases',
    key: ['releaseId'],
    unique: {},
    indexes: { byOrdinal: ['ordinal'], byWorkspace: ['workspaceId', 'ordinal'] },
  }),
  knowledgeFilters: declareTable<KnowledgeFilter>({
    name: 'knowledge_filters',
    key: ['workspaceId', 'knowledgeBaseId', 'knowledgeFilterId'],
    unique: {},
    indexes: {
      byWorkspace: ['workspaceId', 'ordinal'],
      byKnowledgeBase: ['workspaceId', 'knowledgeBaseId', 'ordinal'],
    },
  }),
  jobs: declareTable<JobRow>({
    name: 'jobs',
    key: ['workspaceId', 'jobId'],
    unique: {},
    indexes: {
      byWorkspace: ['workspaceId', 'ordinal'],
      byKnowledgeBase: ['workspaceId', 'knowledgeBaseId', 'ordinal'],
      byDocument: ['workspaceId', 'knowledgeBaseId', 'documentId', 'ordinal'],
      byStatus: ['status', 'ordinal'],
      byLease: ['status', 'leaseUntil', 'ordinal'],
      byEnd: ['endedAt', 'ordinal'],
    },
  }),
  jobInputs: declareTable<JobInputRow>({
    name: 'job_inputs',
    key: ['workspaceId', 'jobId'],
    unique: {},
    indexes: {
      byWorkspace: ['workspaceId', 'jobId'],
      byKnowledgeBase: ['workspaceId', 'knowledgeBaseId', 'ordinal'],
    },
  }),
  jobBatches: declareTable<JobBatchRow>({
    name: 'job_batches',
    key: ['workspaceId', 'jobId', 'start'],
    unique: {},
    indexes: {
      byWorkspace: ['workspaceId', 'ordinal'],
      byKnowledgeBase: ['workspaceId', 'knowledgeBaseId', 'ordinal'],
      byJob: ['workspaceId', 'jobId', 'start'],
    },
  }),
  apiKeys: declareTable<ApiKeyRow>({
    name: 'api_keys',
    key: ['workspaceId', 'keyId'],
    unique: { prefix: ['prefix'] },
    indexes: {
      byWorkspace: ['workspaceId', 'createdAt', 'keyId'],
      byPrefix: ['prefix'],
    },
  }),
  audit: declareTable<AuditRow>({
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
