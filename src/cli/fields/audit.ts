import type { AuditRecord, RecordedCaller } from '../../contract/audit-record.ts'
import type { Column } from '../terminal/output.ts'

const labelBySubjectType = {
  apiKey: 'key',
  oidc: 'signed in',
  bootstrap: 'bootstrap token',
  anonymous: 'anonymous',
  system: 'system',
} as const

/** Describes the caller by its label or ID, its type, and the principal that it viewed the workspace as. */
export function auditSubject({ subject }: Pick<AuditRecord, 'subject'>): string {
  if (!subject) return ''
  return callerAs(subject, subject.viewAs)
}

/** Describes a caller by its label or ID, its type, and the principal as which it viewed the workspace. */
export function callerAs({ type, id, label }: RecordedCaller, viewedPrincipalId?: string): string {
  const name = label ?? id
  const caller = name === null ? labelBySubjectType[type] : `${name} (${labelBySubjectType[type]})`
  return viewedPrincipalId === undefined ? caller : `${caller} as ${viewedPrincipalId}`
}

/** Describes the target of an action, or the reason if the action was denied or failed. */
export function auditTarget({ details, outcome }: Pick<AuditRecord, 'details' | 'outcome'>): string {
  if (!details) return ''
  const { label, reason, count, toolName, jobKind, principalId, user_code, ...rest } = details
  if (outcome !== 'success' && rest.requiredScope) return `needs ${rest.requiredScope}`
  if (outcome !== 'success' && reason) return reason
  const ids = [rest.documentId, rest.keyId, rest.agentId, rest.jobId, rest.knowledgeBaseId, rest.mcpServerId]
  const name = label ?? toolName ?? jobKind ?? principalId ?? user_code ?? ids.find(id => id !== undefined)
  const quantity = count === undefined ? undefined : `${count} of`
  const permissions = rest.scopes && `may ${rest.scopes.replaceAll(',', ' ')}`
  const decision = rest.decision && `(${rest.decision})`
  return [quantity, name ?? reason ?? rest.scheme, permissions, decision].filter(Boolean).join(' ')
}

/**
 * Returns the columns of a list of audit records.
 *
 * @param isForAllWorkspaces  true for records of the whole runtime
 */
export function auditColumns(isForAllWorkspaces: boolean): Record<string, Column<AuditRecord>> {
  return {
    time: { value: row => row.at, format: 'time' },
    who: { value: auditSubject, format: 'flexible', widthMin: 17 },
    what: { value: row => row.action, widthMin: 18 },
    outcome: {
      value: row => row.outcome,
      widthMin: 7,
      tone: row => (row.outcome === 'success' ? undefined : 'bad'),
    },
    on: { value: auditTarget, format: 'flexible' },
    workspace: { value: row => row.workspaceId, format: 'flexible', pipeOnly: !isForAllWorkspaces },
    request: { value: row => row.requestId, pipeOnly: true },
  }
}
