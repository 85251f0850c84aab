import type { Log } from '../base/log.ts'
import type { AuditRecord } from '../contract/audit-record.ts'

/** Destination for audit records. `add` never throws or waits. */
export interface AuditSink {
  add(record: AuditRecord): void
}

/**
 * Returns a sink that writes records to the log.
 *
 * @see docs/requirements.md#S6-16
 */
export function auditLogSink(log: Log): AuditSink {
  return {
    add({ auditId: _auditId, at: _at, ...fields }) {
      log.info({ audit: true, ...fields }, `audit ${fields.action} ${fields.outcome}`)
    },
  }
}
