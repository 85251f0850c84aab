import { z } from 'zod'
import { principalId } from './fields.ts'

/** Path parameters by name. Paths can use only these. */
export const params = {
  workspaceId: z.uuid(),
  knowledgeBaseId: z.uuid(),
  documentId: z.uuid(),
  entryId: z.uuid(),
  chunkingServiceId: z.uuid(),
  embeddingServiceId: z.uuid(),
  rerankingServiceId: z.uuid(),
  llmServiceId: z.uuid(),
  knowledgeFilterId: z.uuid(),
  jobId: z.uuid(),
  agentId: z.uuid(),
  conversationId: z.uuid(),
  messageId: z.uuid(),
  imageIndex: z.string().regex(/^(?:0|[1-9]\d?)$/, 'must be the index of an image, from 0'),
  approvalId: z.uuid(),
  attachmentId: z.uuid(),
  mcpServerId: z.uuid(),
  principalId,
  releaseId: z.uuid(),
  keyId: z.uuid(),
  recordId: z.string().min(1),
  /**
   * ID of the workspace in the path of OAuth metadata. The name differs from `workspaceId`, because the access rules
   * of workspaces do not apply to this path.
   */
  resourceId: z.uuid(),
} as const

export type ParamName = keyof typeof params
