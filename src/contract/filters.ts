import { z } from 'zod'
import { filter, timestamp } from './fields.ts'

export const KnowledgeFilter = z
  .object({
    workspaceId: z.uuid(),
    knowledgeBaseId: z.uuid(),
    knowledgeFilterId: z.uuid(),
    name: z.string(),
    description: z.string().nullable(),
    filter,
    createdAt: timestamp,
    updatedAt: timestamp,
  })
  .meta({ id: 'KnowledgeFilter' })
export type KnowledgeFilter = z.output<typeof KnowledgeFilter>
