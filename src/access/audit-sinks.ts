import type { Log } from '../base/log.ts'
import type { AuditRecord } from '../contract/audit-record.ts'

/** Where records go. Taking one never fails and never waits. */
export interface AuditSink {
  take(record: AuditRecord): void
}

/** Records as lines of the log. @see docs/requirements.md#S6-16 */
export function logLines(log: Log): AuditSink {
  return {
    take({ auditId: _auditId, at: _at, ...said }) {
      log.info({ audit: true, ...said }, `audit ${said.action} ${said.outcome}`)
    },
  }
}
