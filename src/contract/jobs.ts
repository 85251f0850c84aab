import { z } from 'zod'
import { timestamp } from './fields.ts'

export const Job = z
  .object({
    workspaceId: z.uuid(),
    jobId: z.uuid(),
    kind: z.literal('ingest'),
    knowledgeBaseId: z.uuid().nullable(),
    documentId: z.uuid().nullable(),
    status: z.enum(['pending', 'running', 'succeeded', 'failed']),
    processed: z.int(),
    total: z.int().nullable().meta({ description: 'null until the text is cut into chunks' }),
    result: z.object({ chunks: z.int() }).nullable(),
    errorMessage: z.string().nullable(),
    createdAt: timestamp,
    updatedAt: timestamp.meta({ description: 'strictly increases with each change' }),
  })
  .meta({ id: 'Job' })
export type Job = z.output<typeof Job>
