import type { audit } from '../contract/audit.ts'
import type { AuditRecords } from './audit-records.ts'
import type { Handlers } from './caller.ts'

export function auditHandlers(records: AuditRecords): Handlers<typeof audit> {
  return {
    list: async ({ params: { workspaceId }, query }, { follows }) =>
      follows
        ? { status: 200, events: await records.follow(workspaceId, query, follows.after) }
        : { status: 200, body: await records.list(workspaceId, query) },
    listAll: async ({ query }, { follows }) =>
      follows
        ? { status: 200, events: await records.follow(null, query, follows.after) }
        : { status: 200, body: await records.list(null, query) },
  }
}
