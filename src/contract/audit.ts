import { z } from 'zod'
import { needs, operator } from './access.ts'
import { AuditRecord, auditActions } from './audit-record.ts'
import { timestampInput } from './fields.ts'
import { pageOfItems, pageQuery } from './page.ts'
import { route } from './route.ts'

const auditQuery = pageQuery.extend({
  since: timestampInput.optional().meta({ description: 'only records at this time or later' }),
  action: z.enum(auditActions).optional(),
})
export type AuditQuery = z.output<typeof auditQuery>

const streamed =
  'Returns audit records, newest first. With `Accept: text/event-stream` it streams new records as they are written, or all records after the one that `Last-Event-ID` names. If that record is no longer stored, the stream starts with the oldest one. `action` also filters the stream.'

export const audit = {
  list: route({
    method: 'GET',
    path: '/api/v1/workspaces/:workspaceId/audit',
    summary: 'List audit records of a workspace',
    description: streamed,
    access: needs('read:audit').orElse('manage:access'),
    query: auditQuery,
    replies: { 200: pageOfItems(AuditRecord) },
    events: { audit: AuditRecord },
    errors: ['workspace_not_found', 'invalid_cursor'],
  }),
  listAll: route({
    method: 'GET',
    path: '/api/v1/audit',
    summary: 'List audit records of the runtime',
    description: streamed,
    access: operator,
    query: auditQuery,
    replies: { 200: pageOfItems(AuditRecord) },
    events: { audit: AuditRecord },
    errors: ['invalid_cursor'],
  }),
}
