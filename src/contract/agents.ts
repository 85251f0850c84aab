import { z } from 'zod'
import { timestamp } from './fields.ts'

export const Agent = z
  .object({
    workspaceId: z.uuid(),
    agentId: z.uuid(),
    name: z.string(),
    description: z.string().nullable(),
    systemPrompt: z.string().nullable(),
    userPrompt: z.string().nullable(),
    llmServiceId: z.uuid().nullable(),
    knowledgeBaseIds: z.array(z.uuid()),
    toolIds: z.array(z.string()),
    rerankEnabled: z.boolean(),
    rerankingServiceId: z.uuid().nullable(),
    rerankMaxResults: z.int().nullable(),
    createdAt: timestamp,
    updatedAt: timestamp,
  })
  .meta({ id: 'Agent' })
export type Agent = z.output<typeof Agent>
