import { z } from 'zod'
import { timestamp } from './fields.ts'

/** One decision about rows, as the policy audit keeps it. */
export const PolicyDecision = z
  .object({
    workspaceId: z.uuid(),
    auditDay: z.iso.date(),
    ts: timestamp,
    decisionId: z.uuid(),
    principalId: z.string().nullable(),
    knowledgeBaseId: z.string(),
    resourceId: z.string().meta({ description: '`*` or the id of a document' }),
    action: z.enum(['list', 'get', 'search', 'ingest', 'update', 'delete']),
    decision: z.enum(['allow', 'deny', 'filter']),
    reason: z.string(),
    compiledFilterJson: z.string().nullable(),
  })
  .meta({ id: 'PolicyDecision' })
export type PolicyDecision = z.output<typeof PolicyDecision>
