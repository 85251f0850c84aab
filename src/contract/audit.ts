import { z } from 'zod'
import { needs, operator } from './access.ts'
import { AuditRecord, auditActions } from './audit-record.ts'
import { timestampInput } from './fields.ts'
import { page, pageQuery } from './page.ts'
import { route } from './route.ts'

const auditQuery = pageQuery.extend({
  since: timestampInput.optional().meta({ description: 'records of this moment and later' }),
  action: z.enum(auditActions).optional(),
})
export type AuditQuery = z.output<typeof auditQuery>

const streamed =
  'With `Accept: text/event-stream` the answer is a stream of records in the order in which they were kept: from now on, or after the one that `Last-Event-ID` names. After one that is not kept any more come all that are. Of the query, `action` holds for the stream too.'

export const audit = {
  list: route({
    method: 'GET',
    path: '/api/v1/workspaces/:workspaceId/audit',
    summary: 'List what was done in a workspace, the newest first',
    description: streamed,
    access: needs('read:audit').orElse('manage:access'),
    query: auditQuery,
    replies: { 200: page(AuditRecord) },
    events: { audit: AuditRecord },
    errors: ['workspace_not_found', 'invalid_cursor'],
  }),
  listAll: route({
    method: 'GET',
    path: '/api/v1/audit',
    summary: 'List what was done in the runtime, the newest first',
    description: streamed,
    access: operator,
    query: auditQuery,
    replies: { 200: page(AuditRecord) },
    events: { audit: AuditRecord },
    errors: ['invalid_cursor'],
  }),
}
