import { z } from 'zod'
import { needs, operator } from './access.ts'
import { AuditRecord, auditActions } from './audit-record.ts'
import { principalIdFilter, timestampInput } from './fields.ts'
import { pageOfItems, pageQuery } from './page.ts'
import { PolicyDecision, policyDecisions } from './policy.ts'
import { route } from './route.ts'

const auditQuery = pageQuery.extend({
  since: timestampInput.optional().meta({ description: 'only records from this time on' }),
  action: z.enum(auditActions).optional(),
})
export type AuditQuery = z.output<typeof auditQuery>

const decisionPageQuery = pageQuery.extend({
  principalId: principalIdFilter.optional(),
  knowledgeBaseId: z.uuid().optional(),
  auditDay: z.iso.date().optional().meta({ description: 'only decisions of this day (UTC)' }),
  decision: z.enum(policyDecisions).optional().meta({ description: 'only decisions with this result' }),
})
export type DecisionPageQuery = z.output<typeof decisionPageQuery>

const listDescription =
  'Returns audit records, newest first. With `Accept: text/event-stream`, it streams new records as they are written. With `Last-Event-ID`, the stream starts after the record with that ID or, if that record was deleted, with the oldest stored record. `action` also filters the stream.'

export const audit = {
  list: route({
    method: 'GET',
    path: '/api/v1/workspaces/:workspaceId/audit',
    summary: 'List audit records of a workspace',
    description: listDescription,
    access: needs('read:audit').orElse('manage:access'),
    query: auditQuery,
    replies: { 200: pageOfItems(AuditRecord) },
    events: { audit: AuditRecord },
    errors: ['workspace_not_found', 'invalid_cursor'],
  }),
  decisions: route({
    method: 'GET',
    path: '/api/v1/workspaces/:workspaceId/audit/decisions',
    summary: 'List policy decisions page by page',
    description:
      'Returns policy decisions, newest first. A caller that row-level access limits, and that has no `manage:access`, gets its own decisions, lists and searches of other principals without their filters, and all decisions of knowledge bases in which it can see all documents. A page can be empty, even if more pages follow.',
    access: needs('read:audit').orElse('manage:access'),
    query: decisionPageQuery,
    replies: { 200: pageOfItems(PolicyDecision) },
    errors: ['workspace_not_found', 'invalid_cursor'],
  }),
  listAll: route({
    method: 'GET',
    path: '/api/v1/audit',
    summary: 'List audit records of the runtime',
    description: listDescription,
    access: operator,
    query: auditQuery,
    replies: { 200: pageOfItems(AuditRecord) },
    events: { audit: AuditRecord },
    errors: ['invalid_cursor'],
  }),
}
