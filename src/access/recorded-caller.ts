import { presentableMessage } from '../base/redact.ts'
import type { RecordedCaller } from '../contract/audit-record.ts'
import type { AuthContext } from './subject.ts'

/**
 * Returns the caller to record. The label is omitted if the caller has no access to the workspace, because readers of a
 * workspace's records must not learn anything about other workspaces.
 */
export function toRecordedCaller({ subject }: AuthContext, workspaceId: string | undefined): RecordedCaller {
  if (!subject) return { type: 'anonymous', id: null, label: null }
  const { type, id, label, workspaceScopes } = subject
  const isForeign = workspaceId !== undefined && workspaceScopes?.includes(workspaceId) === false
  return {
    type,
    id: presentableMessage(id),
    label: label === null || isForeign ? null : presentableMessage(label),
  }
}
