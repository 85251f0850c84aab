import type { AuditRecord } from '../../contract/audit-record.ts'
import type { Column } from '../terminal/output.ts'

const kinds = {
  apiKey: 'key',
  oidc: 'signed in',
  bootstrap: 'bootstrap token',
  anonymous: 'anonymous',
  system: 'system',
} as const

/** Returns the label or ID of the caller, and its type. */
export function auditSubject({ subject }: Pick<AuditRecord, 'subject'>): string {
  if (!subject) return ''
  const name = subject.label ?? subject.id
  return name === null ? kinds[subject.type] : `${name} (${kinds[subject.type]})`
}

/** Returns the target of an action, and for a refusal or failure its reason. */
export function auditTarget({ details, outcome }: Pick<AuditRecord, 'details' | 'outcome'>): string {
  if (!details) return ''
  const { label, reason, count, toolName, jobKind, principalId, user_code, ...rest } = details
  if (outcome !== 'success' && rest.requiredScope) return `needs ${rest.requiredScope}`
  if (outcome !== 'success' && reason) return reason
  const ids = [rest.documentId, rest.keyId, rest.agentId, rest.jobId, rest.knowledgeBaseId, rest.mcpServerId]
  const name = label ?? toolName ?? jobKind ?? principalId ?? user_code ?? ids.find(id => id !== undefined)
  const number = count === undefined ? undefined : `${count} of`
  const more = rest.scopes && `may ${rest.scopes.replaceAll(',', ' ')}`
  const decided = rest.decision && `(${rest.decision})`
  return [number, name ?? reason ?? rest.scheme, more, decided].filter(Boolean).join(' ')
}

/**
 * Returns the columns of an audit record.
 *
 * @param everywhere  true for records of the whole runtime
 */
export function auditColumns(everywhere: boolean): Record<string, Column<AuditRecord>> {
  return {
    time: { of: row => row.at, as: 'time' },
    who: { of: auditSubject, as: 'free', least: 17 },
    what: { of: row => row.action, least: 18 },
    outcome: {
      of: row => row.outcome,
      least: 7,
      tone: row => (row.outcome === 'success' ? undefined : 'bad'),
    },
    on: { of: auditTarget, as: 'free' },
    workspace: { of: row => row.workspaceId, as: 'free', piped: !everywhere },
    request: { of: row => row.requestId, piped: true },
  }
}
