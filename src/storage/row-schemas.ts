import { z } from 'zod'
import { Agent } from '../contract/agents.ts'
import { Attachment, AttachmentText } from '../contract/attachments.ts'
import { AuditRecord } from '../contract/audit-record.ts'
import { Conversation, Message } from '../contract/conversations.ts'
import { Document, DocumentChunking } from '../contract/documents.ts'
import { KnowledgeFilter } from '../contract/filters.ts'
import { FolderDescription } from '../contract/folder-description.ts'
import { imageMediaTypes } from '../contract/images.ts'
import { DocumentIngestReport } from '../contract/ingest-report.ts'
import { LoggedSearch } from '../contract/insights.ts'
import { Job } from '../contract/jobs.ts'
import { ApiKey } from '../contract/keys.ts'
import { KnowledgeBase } from '../contract/knowledge.ts'
import { McpServer } from '../contract/mcp-servers.ts'
import { PolicyDecision } from '../contract/policy.ts'
import { Principal } from '../contract/principals.ts'
import { SecretRelease } from '../contract/releases.ts'
import { ChunkingService, EmbeddingService, LlmService, RerankingService } from '../contract/services.ts'
import { Workspace } from '../contract/workspaces.ts'
import type { tables } from './tables.ts'

// Rows that earlier versions wrote may lack fields that were added later.
const text = z.string().nullish()
const object = z.looseObject({}).nullish()
const messageRow = Message.omit({ chatId: true }).extend({
  conversationId: z.string(),
  role: z.enum([...Message.shape.role.options, 'tool']),
  authorId: text,
  toolId: text,
  toolCallPayload: object,
  toolResponse: object,
  questionId: z.string().optional(),
  sources: z
    .array(z.tuple([z.string(), z.string().nullable(), z.string().nullable(), z.string().optional()]))
    .optional(),
})
const jobKey = { workspaceId: z.string(), knowledgeBaseId: z.string(), jobId: z.string() }

function accessVersion<K extends string, S extends z.ZodObject>(kind: K, state: S) {
  const text = z.string()
  return z.object({
    workspaceId: text,
    versionId: text,
    until: text,
    targetId: text,
    kind: z.literal(kind),
    state,
  })
}

const documentRow = Document.extend({
  ingestKey: text,
  nameKey: text,
  jobId: text,
  isVisibilityDecided: z.boolean().optional(),
  createdAt: z.string().optional(),
  chunking: DocumentChunking.optional(),
  ingestReport: DocumentIngestReport.optional(),
})

/**
 * Row schemas, by table. They extend the response schemas of the API, because a row must satisfy those anyway to be
 * sent in a response. The types of the additional fields are in `tables.ts`. Fields without a schema are ignored.
 */
export const rowSchemas: Readonly<Record<keyof typeof tables, z.ZodType>> = {
  settings: z.object({ name: z.string(), value: z.string() }),
  workspaces: Workspace.extend({ databaseKey: text }),
  chunkingServices: ChunkingService,
  embeddingServices: EmbeddingService,
  rerankingServices: RerankingService,
  llmServices: LlmService,
  knowledgeBases: KnowledgeBase.extend({
    reindexJobId: z.string().optional(),
    reindexSpace: z.string().optional(),
    folders: z.array(FolderDescription).optional(),
    import: z
      .object({
        header: z.string(),
        hash: z.string(),
        lines: z.int(),
        documents: z.int(),
        records: z.int(),
        documentId: z.string().nullable(),
        isRestricted: z.boolean(),
        ownerId: z.string().nullable(),
      })
      .optional(),
  }),
  documents: documentRow,
  deletedDocuments: documentRow.extend({
    entryId: z.string(),
    deletionId: z.string(),
    deletedAt: z.string(),
    generation: z.int(),
  }),
  deletedChunks: z.object({
    workspaceId: z.string(),
    knowledgeBaseId: z.string(),
    entryId: z.string(),
    start: z.int(),
    chunks: z.array(
      z.object({
        id: z.string(),
        chunkIndex: z.int().nullable(),
        context: z.string().nullable().optional(),
        text: z.string().nullable(),
        payload: z.record(z.string(), z.unknown()),
        vector: z.string().nullable(),
      }),
    ),
  }),
  agents: Agent,
  conversations: Conversation.extend({
    ownerPrincipalId: text,
    createdBy: text,
    approvals: z.record(z.string(), z.record(z.string(), z.string())).optional(),
    untrustedSince: text,
    attached: z.object({ count: z.int(), textChars: z.int() }).optional(),
  }),
  messages: messageRow,
  messageVersions: messageRow.extend({ versionId: z.string(), untrustedSince: text }),
  messageImages: z.object({
    workspaceId: z.string(),
    conversationId: z.string(),
    messageId: z.string(),
    imageIndex: z.int(),
    mediaType: z.enum(imageMediaTypes),
    data: z.string(),
    createdAt: z.string(),
  }),
  attachments: Attachment,
  attachmentTexts: AttachmentText.extend({
    workspaceId: z.string(),
    conversationId: z.string(),
    attachmentId: z.string(),
  }),
  mcpServers: McpServer.extend({
    reviewedTools: z.record(z.string(), z.object({ hash: z.string(), description: z.string() })).nullable(),
  }),
  mcpSignIns: z.object({
    workspaceId: z.string(),
    mcpServerId: z.string(),
    subject: z.string(),
    createdAt: z.string(),
    scopes: z.array(z.string()).nullable(),
    expiresAt: z.string().nullable(),
    canRefresh: z.boolean(),
    sealed: z.string(),
    refreshingUntil: z.string().nullable(),
  }),
  principals: Principal,
  policyAudit: PolicyDecision,
  queryLog: LoggedSearch,
  accessVersions: z.discriminatedUnion('kind', [
    accessVersion('workspace', Workspace.pick({ rlacEnabled: true, createdAt: true })),
    accessVersion(
      'knowledgeBase',
      KnowledgeBase.pick({ policyDsl: true, policyEnabled: true, createdAt: true }),
    ),
    accessVersion(
      'principal',
      Principal.pick({ label: true, role: true, attributes: true, createdAt: true }),
    ),
    accessVersion(
      'document',
      Document.pick({ ownerPrincipalId: true, sourceFilename: true, status: true }).extend({
        metadata: Document.shape.metadata.optional(),
        visibleTo: Document.shape.visibleTo.optional(),
      }),
    ),
    accessVersion('documentMetadata', Document.pick({ metadata: true })),
    accessVersion('documentVisibility', Document.pick({ visibleTo: true })),
  ]),
  secretReleases: SecretRelease,
  knowledgeFilters: KnowledgeFilter,
  jobs: Job.extend({
    leaseOwner: text,
    leaseUntil: text,
    deaths: z.number().optional(),
    endedAt: text,
    reindex: z
      .object({
        embeddingServiceId: z.string().nullable(),
        folders: z.string().optional(),
        checkedThrough: z.int(),
        rechunked: z.int(),
        unchanged: z.int(),
        kept: z.int(),
      })
      .optional(),
  }),
  jobInputs: z.object({
    ...jobKey,
    body: z.looseObject({ text: z.string(), metadata: z.looseObject({}) }),
  }),
  jobBatches: z.object({ ...jobKey, start: z.int(), source: z.string(), vectors: z.array(z.string()) }),
  apiKeys: ApiKey.omit({ role: true }).extend({
    scopes: ApiKey.shape.scopes.optional(),
    principalId: text,
    spanMs: z.number().nullish(),
    digest: z.string(),
  }),
  audit: AuditRecord.extend({ refusal: z.literal(1).optional() }),
}
