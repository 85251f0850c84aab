import type { PolicyDecision } from '../../contract/policy.ts'
import type { Column } from '../terminal/output.ts'
import { callerAs } from './audit.ts'

/** Columns of a list of policy decisions. */
export const decisionColumns: Record<string, Column<PolicyDecision>> = {
  time: { value: row => row.ts, format: 'time' },
  principal: { value: principalOf, format: 'flexible', widthMin: 9 },
  action: { value: row => row.action },
  decision: { value: row => row.decision, tone: row => (row.decision === 'deny' ? 'bad' : undefined) },
  reason: { value: row => row.reason },
  resource: { value: row => row.resourceId, format: 'flexible' },
  'knowledge base': { value: row => row.knowledgeBaseId, pipeOnly: true },
  filter: { value: row => row.compiledFilterJson, format: 'flexible' },
}

/** Returns the principal, with the caller that viewed the workspace as this principal. */
function principalOf({ principalId, viewedBy }: PolicyDecision): string | null {
  return viewedBy && principalId !== null ? callerAs(viewedBy, principalId) : principalId
}
