import { type AuditRow, tables } from '../storage/tables.ts'
import type { AuditTrail } from './audit-trail.ts'
import { RecordRetention, type RetentionDependencies } from './record-retention.ts'

/** Default maximum number of stored records other than refusals, about 1 GB. */
const actionsMaxDefault = 1_000_000
/**
 * Default maximum number of stored refusals (records of denied requests and of anonymous sign-in events), about 100 MB.
 * Anyone can cause refusals without a credential, so they have a separate limit and cannot displace other records.
 */
const refusalsMaxDefault = 100_000

export interface AuditRetentionDependencies extends RetentionDependencies {
  readonly trail: AuditTrail
  readonly retentionDays: number
  readonly actionsMax?: number
  readonly refusalsMax?: number
}

/** Returns the retention of the audit trail. */
export function openAuditRetention(deps: AuditRetentionDependencies): RecordRetention<AuditRow> {
  const { trail, retentionDays, actionsMax = actionsMaxDefault, refusalsMax = refusalsMaxDefault } = deps
  return new RecordRetention(deps, {
    table: tables.audit,
    retentionDays,
    limits: [
      { list: { index: 'byRefusal', prefix: [null] }, max: actionsMax },
      { list: { index: 'byRefusal', prefix: [1] }, max: refusalsMax },
    ],
    onStored: listener => trail.onStored(listener),
    failureWarning: 'old audit records could not be deleted',
  })
}
