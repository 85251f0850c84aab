import type { TextLayout } from '../base/text-layout.ts'
import type { Agent } from '../contract/agents.ts'
import type { Attachment, AttachmentText } from '../contract/attachments.ts'
import type { AuditRecord } from '../contract/audit-record.ts'
import type { Conversation, Message } from '../contract/conversations.ts'
import type { Document, DocumentChunking, Ingest } from '../contract/documents.ts'
import type { KnowledgeFilter } from '../contract/filters.ts'
import type { FolderDescription } from '../contract/folder-description.ts'
import type { ImageInput } from '../contract/images.ts'
import type { DocumentIngestReport } from '../contract/ingest-report.ts'
import type { LoggedSearch } from '../contract/insights.ts'
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
import type { Actor } from './visibility.ts'

/** A document, with its internal fields. */
export interface DocumentRow extends Document {
  /**
   * Unique key of an ingested document: workspace, knowledge base, owner with row-level access, and content hash. Null if
   * ingestion failed or the document was not ingested.
   */
  ingestKey: string | null
  /**
   * Unique key of an ingested document: workspace, knowledge base, owner with row-level access, and file name; with
   * a number if hidden documents have the earlier keys. Null without a file name, or whenever `ingestKey` is null.
   */
  nameKey: string | null
  /** ID of the job that is ingesting the document; null or absent after the job has ended. */
  jobId?: string | null
  /**
   * True if `visibleTo` was decided: while row-level access was on, or by an update. If it is null, the document then stays
   * hidden when row-level access is turned on again.
   */
  isVisibilityDecided?: boolean
  /**
   * Timestamp at which the document was created; absent for a document of an earlier version. What refers to a document by
   * its ID, and is older, refers to a deleted document that had the same ID.
   */
  createdAt?: string
  /** How the ingest split the text; absent for a document without text, or of an earlier version. */
  chunking?: DocumentChunking
  /** Record of the last ingest; absent for a document without text, or of an earlier version. */
  ingestReport?: DocumentIngestReport
}

/** A deleted document that can be restored. */
export interface DeletedDocumentRow extends DocumentRow {
  /** ID of this entry. Several entries can have the same document ID. */
  entryId: string
  /** ID shared by documents that were deleted together. */
  deletionId: string
  deletedAt: string
  /** Generation of the vectors of the chunks. */
  generation: number
}

/** Chunks of a deleted document. They have a separate table, so that lists of deleted documents do not read them. */
export interface DeletedChunksRow {
  workspaceId: string
  knowledgeBaseId: string
  entryId: string
  /** Index of the first chunk. */
  start: number
  chunks: DeletedChunk[]
}

export interface DeletedChunk {
  id: string
  chunkIndex: number | null
  /** Absent in rows of schema 18. */
  context?: string | null
  text: string | null
  payload: Record<string, unknown>
  /** Vector: 32-bit floats, little-endian, in base64; null if the runtime computes it again. */
  vector: string | null
}

/** A workspace, with its internal fields. */
export interface WorkspaceRow extends Workspace {
  /** Unique key that consists of the URL and the keyspace; null without a URL. */
  databaseKey?: string | null
}

/** A knowledge base, with its internal fields. */
export interface KnowledgeBaseRow extends KnowledgeBase {
  /** Progress of an import; absent unless `importing` is true. */
  import?: ImportProgress
  /** ID of the job that last reindexed the knowledge base; absent if there was none. */
  reindexJobId?: string
  /** Vector space that a job fills with the vectors of another embedding service; absent while no job needs one. */
  reindexSpace?: string
  /** Descriptions of folders, sorted by path; absent until the first one. */
  folders?: FolderDescription[]
}

/** How far a file has been imported. */
export interface ImportProgress {
  /** Hash of the first line. */
  header: string
  /** Hash of all lines so far. */
  hash: string
  /** Number of lines so far. */
  lines: number
  documents: number
  records: number
  /** The document to which the next chunks belong; null before the first document. */
  documentId: string | null
  /** True if every request of the import needs row-level access and `manage:access`. */
  isRestricted: boolean
  /** The principal that started the import; null if it has none, or without row-level access. */
  ownerId: string | null
}

/** A job, with its internal fields. */
export interface JobRow extends Job {
  /** ID of the process that is working on the job. */
  leaseOwner: string | null
  /** Timestamp at which the lease ends and other processes may take over the job. */
  leaseUntil: string | null
  /** Number of processes that have crashed while working on the job since it last made progress. */
  deaths?: number
  /** Timestamp at which the job ended; null while it is pending or running. */
  endedAt: string | null
  /** State of a job that reindexes a knowledge base. */
  reindex?: ReindexState
}

/** State of a job that reindexes a knowledge base. */
export interface ReindexState {
  /** Embedding service to change to; null to keep the current one. */
  embeddingServiceId: string | null
  /** Hash of the folder descriptions of the chunks so far; absent before the first document. */
  folders?: string
  /** Number of the last document that was checked, in the order of the table; 0 before the first. */
  checkedThrough: number
  /** Number of documents that were split into chunks again. */
  rechunked: number
  /** Number of documents whose chunks did not change. */
  unchanged: number
  /** Number of documents that keep their chunks, because their text cannot be read from them. */
  kept: number
}

/** Input of a job; deleted when the job ends. */
export interface JobInputRow {
  workspaceId: string
  knowledgeBaseId: string
  jobId: string
  body: Ingest & { readonly layout?: TextLayout | undefined }
  /** Caller that created the job; absent for a job of an earlier version. */
  actor?: Actor
}

/** Vectors that a job has computed, but not stored with the document yet; deleted when the job ends. */
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
  /** Principal that started the conversation; null if the caller was not a principal. */
  ownerPrincipalId: string | null
  /** Name of the subject that started the conversation; null if anonymous, absent on old rows. */
  createdBy?: string | null
  /**
   * Tools that may run in this conversation without a further approval. Maps the name of the subject that approved them
   * to a map from tool IDs to hashes of the approved descriptions.
   */
  approvals?: Record<string, Record<string, string>>
  /**
   * Timestamp of the question whose turn first read text from documents or tools. All later answers may be based on
   * that text. Null or absent if no such text was read.
   */
  untrustedSince?: string | null
  /** Number and total length of the attachments; absent before the first attachment. */
  attached?: { count: number; textChars: number }
}

/** Text of an attachment. It has a separate table, so that lists of attachments do not read it. */
export interface AttachmentTextRow extends AttachmentText {
  workspaceId: string
  conversationId: string
  attachmentId: string
}

/**
 * A document that a text is derived from, or a record. `documentId` is null for a record without a document. `chunkId` is
 * null if the document identifies the source. Without `readAt`, the source was read when the message was stored.
 */
export type MessageSource = readonly [
  knowledgeBaseId: string,
  documentId: string | null,
  chunkId: string | null,
  readAt?: string,
]

/** A message, with its internal fields. */
export interface MessageRow extends Omit<Message, 'chatId' | 'role'> {
  conversationId: string
  role: Message['role'] | 'tool'
  authorId: string | null
  toolId: string | null
  toolCallPayload: object | null
  toolResponse: object | null
  /** ID of the first version of the question; set on user messages that have several versions. */
  questionId?: string
  /**
   * Sources of an answer, including those of the earlier messages that the model received; of a tool result; or of a
   * summary. Absent on other messages, and if the sources are not known.
   */
  sources?: MessageSource[]
}

/** A message that belongs to a version of a question that is not currently shown in the conversation. */
export interface MessageVersionRow extends MessageRow {
  /** ID of the user message that starts the version. */
  versionId: string
  /** `untrustedSince` of the version; set on the first message of the version. */
  untrustedSince?: string | null
}

/** An image of a message, with its data. The message row contains only a list of its images. */
export interface MessageImageRow extends ImageInput {
  workspaceId: string
  conversationId: string
  messageId: string
  imageIndex: number
  createdAt: string
}

/** The version of an MCP tool that was accepted: in a review, or automatically when the server first responded. */
export interface AcceptedTool {
  /** Hash of the name, description and schema. */
  hash: string
  description: string
}

/** An MCP server, with its accepted tools. */
export interface McpServerRow extends McpServer {
  /** Accepted tools by name; null until the server responds for the first time. */
  reviewedTools: Record<string, AcceptedTool> | null
}

/** A subject's sign-in to an MCP server. */
export interface McpSignInRow {
  workspaceId: string
  mcpServerId: string
  /** Name of the subject that signed in. */
  subject: string
  /** Timestamp of the sign-in. */
  createdAt: string
  /** Granted scopes; null if the authorization server did not return them. */
  scopes: string[] | null
  /** Timestamp at which the access token expires; null if the authorization server did not return it. */
  expiresAt: string | null
  canRefresh: boolean
  /** Tokens and OAuth client, encrypted with a key of the runtime. */
  sealed: string
  /** Timestamp at which the lease of the process that is using the refresh token ends; null if there is no lease. */
  refreshingUntil: string | null
}

/** An API key, with its internal fields. */
export interface ApiKeyRow extends Omit<ApiKey, 'role' | 'scopes' | 'principalId'> {
  /** Absent from keys that were created before scopes existed. */
  scopes?: Scope[]
  principalId?: string | null
  /** Original lifetime in milliseconds; null if unlimited, absent if the expiry was never changed. */
  spanMs?: number | null
  /** `scrypt$<salt>$<digest>` of the complete token. */
  digest: string
}

/** An audit record, with its internal fields. */
export interface AuditRow extends AuditRecord {
  /**
   * Set on records of denied requests and of sign-in events of anonymous callers. The maximum number of these records
   * is separate from that of other records.
   */
  refusal?: 1
}

/**
 * The facts that decide about access, by kind: the fields that a policy or a decision can depend on. The fields of a document that
 * can be large have separate kinds, so that a change of a small field does not copy them.
 */
export interface AccessVersionStates {
  workspace: Pick<Workspace, 'rlacEnabled' | 'createdAt'>
  knowledgeBase: Pick<KnowledgeBase, 'policyDsl' | 'policyEnabled' | 'createdAt'>
  principal: Pick<Principal, 'label' | 'role' | 'attributes' | 'createdAt'>
  /** A version that an earlier build has stored also contains the fields of the following kinds. */
  document: Pick<Document, 'ownerPrincipalId' | 'sourceFilename' | 'status'> &
    Partial<Pick<Document, 'metadata' | 'visibleTo'>>
  documentMetadata: Pick<Document, 'metadata'>
  documentVisibility: Pick<Document, 'visibleTo'>
}

export const documentVersionKinds = ['document', 'documentMetadata', 'documentVisibility'] as const

/** The facts that decided about access until a change. */
export interface AccessVersionRow<Kind extends keyof AccessVersionStates = keyof AccessVersionStates> {
  workspaceId: string
  versionId: string
  kind: Kind
  /** ID of what changed. For a document: the IDs of its knowledge base and of the document, with a slash between them. */
  targetId: string
  /** Timestamp of the change. */
  until: string
  state: AccessVersionStates[Kind]
}

/** A value that belongs to the whole store, such as the key that signs cursors. */
export interface SettingRow {
  name: string
  value: string
}

function declareTable<Row extends object>(declaration: RowTable<Row>): RowTable<Row> {
  return declaration
}

/** All tables except the content of collections. */
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
  knowledgeBases: declareTable<KnowledgeBaseRow>({
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
    hasTags: true,
    key: ['workspaceId', 'knowledgeBaseId', 'documentId'],
    unique: { ingestKey: ['ingestKey'], nameKey: ['nameKey'] },
    indexes: {
      byWorkspace: ['workspaceId', 'ordinal'],
      byKnowledgeBase: ['workspaceId', 'knowledgeBaseId', 'ordinal'],
      byFilename: ['workspaceId', 'knowledgeBaseId', 'sourceFilename', 'ordinal'],
      byIngestKey: ['ingestKey', 'ordinal'],
      byContentHash: ['workspaceId', 'contentHash', 'knowledgeBaseId', 'ordinal'],
    },
  }),
  deletedDocuments: declareTable<DeletedDocumentRow>({
    name: 'deleted_documents',
    hasTags: true,
    key: ['workspaceId', 'entryId'],
    unique: {},
    indexes: {
      byWorkspace: ['workspaceId', 'ordinal'],
      byKnowledgeBase: ['workspaceId', 'knowledgeBaseId', 'ordinal'],
      byDocument: ['workspaceId', 'knowledgeBaseId', 'documentId', 'ordinal'],
      byTime: ['deletedAt', 'ordinal'],
      byOrdinal: ['ordinal'],
    },
  }),
  deletedChunks: declareTable<DeletedChunksRow>({
    name: 'deleted_chunks',
    key: ['workspaceId', 'entryId', 'start'],
    unique: {},
    indexes: {
      byWorkspace: ['workspaceId', 'ordinal'],
      byKnowledgeBase: ['workspaceId', 'knowledgeBaseId', 'ordinal'],
      byEntry: ['workspaceId', 'entryId', 'start'],
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
      byOrdinal: ['ordinal'],
      byTime: ['ts', 'ordinal'],
      byWorkspace: ['workspaceId', 'ordinal'],
      byDay: ['workspaceId', 'auditDay', 'ordinal'],
      byDecision: ['workspaceId', 'decision', 'ordinal'],
      byPrincipal: ['workspaceId', 'principalId', 'ordinal'],
      byKnowledgeBase: ['workspaceId', 'knowledgeBaseId', 'ordinal'],
    },
  }),
  queryLog: declareTable<LoggedSearch>({
    name: 'query_log',
    key: ['workspaceId', 'searchId'],
    unique: {},
    indexes: {
      byOrdinal: ['ordinal'],
      byTime: ['at', 'ordinal'],
      byWorkspace: ['workspaceId', 'ordinal'],
      byKnowledgeBase: ['workspaceId', 'knowledgeBaseId', 'at', 'ordinal'],
      byCaller: ['workspaceId', 'knowledgeBaseId', 'caller', 'at', 'ordinal'],
    },
  }),
  accessVersions: declareTable<AccessVersionRow>({
    name: 'access_versions',
    key: ['workspaceId', 'versionId'],
    unique: {},
    indexes: {
      byWorkspace: ['workspaceId', 'ordinal'],
      byKind: ['workspaceId', 'kind', 'until', 'ordinal'],
      byTarget: ['workspaceId', 'kind', 'targetId', 'until', 'ordinal'],
      byOrdinal: ['ordinal'],
      byTime: ['until', 'ordinal'],
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
    hasTags: true,
    key: ['workspaceId', 'jobId'],
    unique: {},
    indexes: {
      byWorkspace: ['workspaceId', 'ordinal'],
      byKnowledgeBase: ['workspaceId', 'knowledgeBaseId', 'ordinal'],
      byDocument: ['workspaceId', 'knowledgeBaseId', 'documentId', 'ordinal'],
      byStatus: ['status', 'ordinal'],
      byTurn: ['status', 'workspaceId', 'ordinal'],
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
