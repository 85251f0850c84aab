import type { PolicyDecision } from '../../contract/policy.ts'
import { tables } from '../../storage/tables.ts'
import { RecordRetention, type RetentionDependencies } from '../record-retention.ts'
import type { DecisionRecorder } from './decision-recorder.ts'

export interface DecisionRetentionDependencies extends RetentionDependencies {
  readonly recorder: Pick<DecisionRecorder, 'onStored'>
  readonly decisionRetentionDays: number
  /** Maximum number of stored decisions of all workspaces. */
  readonly decisionsMax: number
}

/** Returns the retention of the policy audit. */
export function openDecisionRetention(deps: DecisionRetentionDependencies): RecordRetention<PolicyDecision> {
  return new RecordRetention(deps, {
    table: tables.policyAudit,
    retentionDays: deps.decisionRetentionDays,
    limits: [{ list: { index: 'byOrdinal', prefix: [] }, max: deps.decisionsMax }],
    onStored: listener => deps.recorder.onStored(listener),
    failureWarning: 'old policy decisions could not be deleted',
  })
}
