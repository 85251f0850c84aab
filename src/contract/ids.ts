import { z } from 'zod'

/** Path parameters by name: a path can only use these. */
export const params = {
  workspaceId: z.uuid(),
  knowledgeBaseId: z.uuid(),
  documentId: z.uuid(),
  chunkingServiceId: z.uuid(),
  embeddingServiceId: z.uuid(),
  keyId: z.uuid(),
  recordId: z.string().min(1),
} as const

export type ParamName = keyof typeof params
