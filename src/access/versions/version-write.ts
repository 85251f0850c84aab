import { newId } from '../../base/id.ts'
import type { KnowledgeBase } from '../../contract/knowledge.ts'
import type { Principal } from '../../contract/principals.ts'
import type { Workspace } from '../../contract/workspaces.ts'
import type { Write } from '../../storage/rows.ts'
import {
  type AccessVersionRow,
  type AccessVersionStates,
  type DocumentRow,
  tables,
} from '../../storage/tables.ts'
import { policyPayload } from '../policy/document-fields.ts'

/*
 * Writes that record what access was before a change. They are part of the transaction of the change. Each returns an
 * empty list if the change does not affect access.
 */

/** @param now  timestamp of the change */
export function workspaceVersion(before: Workspace, after: Workspace, now: string): Write[] {
  const { workspaceId, rlacEnabled, createdAt } = before
  if (rlacEnabled === after.rlacEnabled) return []
  return [
    versionWrite(
      { workspaceId, until: now, kind: 'workspace', targetId: workspaceId },
      { rlacEnabled, createdAt },
    ),
  ]
}

/** @param now  timestamp of the change */
export function knowledgeBaseVersion(before: KnowledgeBase, after: KnowledgeBase, now: string): Write[] {
  const { workspaceId, knowledgeBaseId, policyDsl, policyEnabled, createdAt } = before
  if (policyDsl === after.policyDsl && policyEnabled === after.policyEnabled) return []
  return [
    versionWrite(
      { workspaceId, until: now, kind: 'knowledgeBase', targetId: knowledgeBaseId },
      { policyDsl, policyEnabled, createdAt },
    ),
  ]
}

/**
 * @param after  null if the principal is deleted
 * @param now    timestamp of the change
 */
export function principalVersion(before: Principal, after: Principal | null, now: string): Write[] {
  const { workspaceId, principalId, label, role, attributes, createdAt } = before
  const isSame =
    after !== null && role === after.role && JSON.stringify(attributes) === JSON.stringify(after.attributes)
  if (isSame) return []
  return [
    versionWrite(
      { workspaceId, until: now, kind: 'principal', targetId: principalId },
      { label, role, attributes, createdAt },
    ),
  ]
}

/** @param now  timestamp of the change */
export function documentVersion(before: DocumentRow, after: DocumentRow, now: string): Write[] {
  if (JSON.stringify(policyPayload(before)) === JSON.stringify(policyPayload(after))) return []
  const { workspaceId, knowledgeBaseId, documentId } = before
  const { metadata, visibleTo, ownerPrincipalId, sourceFilename, status } = before
  return [
    versionWrite(
      { workspaceId, until: now, kind: 'document', targetId: documentTarget(knowledgeBaseId, documentId) },
      { metadata, visibleTo, ownerPrincipalId, sourceFilename, status },
    ),
  ]
}

/** Returns the `targetId` of the versions of a document. Documents of two knowledge bases can have the same ID. */
export function documentTarget(knowledgeBaseId: string, documentId: string): string {
  return `${knowledgeBaseId}/${documentId}`
}

function versionWrite<Kind extends keyof AccessVersionStates>(
  version: Omit<AccessVersionRow<Kind>, 'versionId' | 'state'>,
  state: AccessVersionStates[Kind],
): Write {
  return { op: 'insert', table: tables.accessVersions, row: { ...version, versionId: newId(), state } }
}
