import { newId } from '../../base/id.ts'
import type { KnowledgeBase } from '../../contract/knowledge.ts'
import { limits } from '../../contract/limits.ts'
import type { Principal } from '../../contract/principals.ts'
import type { Workspace } from '../../contract/workspaces.ts'
import type { Write } from '../../storage/rows.ts'
import {
  type AccessVersionRow,
  type AccessVersionStates,
  type DocumentRow,
  documentVersionKinds,
  tables,
} from '../../storage/tables.ts'
import { isColumnName } from '../policy/parse.ts'

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
export function documentVersions(before: DocumentRow, after: DocumentRow, now: string): Write[] {
  const { workspaceId, knowledgeBaseId, documentId } = before
  const version = { workspaceId, until: now, targetId: documentTarget(knowledgeBaseId, documentId) }
  return documentVersionKinds.flatMap(kind => {
    const state = documentStates[kind](before)
    const isSame = JSON.stringify(state) === JSON.stringify(documentStates[kind](after))
    return isSame ? [] : [versionWrite({ ...version, kind }, state)]
  })
}

type DocumentVersionKind = (typeof documentVersionKinds)[number]

const documentStates: {
  readonly [Kind in DocumentVersionKind]: (document: DocumentRow) => AccessVersionStates[Kind]
} = {
  document: ({ ownerPrincipalId, sourceFilename, status }) => ({
    ownerPrincipalId: ownerPrincipalId && readableText(ownerPrincipalId),
    sourceFilename: sourceFilename && readableText(sourceFilename),
    status,
  }),
  documentMetadata: ({ metadata }) => ({ metadata: readableMetadata(metadata) }),
  documentVisibility: ({ visibleTo }) => ({ visibleTo: visibleTo?.map(readableText) ?? null }),
}

/** Returns the metadata that policies can read. */
function readableMetadata(metadata: DocumentRow['metadata']): DocumentRow['metadata'] {
  return Object.fromEntries(
    Object.entries(metadata)
      .filter(([key]) => isColumnName(key))
      .map(([key, value]) => [key, typeof value === 'string' ? readableText(value) : value]),
  )
}

/**
 * Cuts a text after one character more than the longest value with which a policy can compare it. The results of all comparisons
 * remain.
 */
function readableText(text: string): string {
  return text.slice(0, limits.policyChars + 1)
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
