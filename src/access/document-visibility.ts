import type { RowStore } from '../storage/rows.ts'
import { type DocumentRow, tables } from '../storage/tables.ts'
import { documentMatcher } from './policy/document-fields.ts'
import type { AccessTarget, RowAccess } from './row-access.ts'

/** The document that something refers to; null for a passage or a job without a document. */
export interface DocumentReference {
  readonly workspaceId: string
  readonly knowledgeBaseId: string | null
  readonly documentId: string | null
  /** Timestamp of the reference. */
  readonly createdAt: string
}

/** Returns true if a document existed at a time, so that an older reference to its ID means another document. */
export function existedAt({ createdAt }: Pick<DocumentRow, 'createdAt'>, time: string): boolean {
  return createdAt === undefined || createdAt <= time
}

/**
 * Returns true if a caller may see the document that something refers to. A caller who may not see all rows cannot see
 * what refers to a missing document, even if a later document has its ID.
 *
 * @throws policy_principal_required  row-level access is on, and the caller is not a principal
 */
export async function isDocumentVisible(
  rows: RowStore,
  { workspaceId, knowledgeBaseId, documentId, createdAt }: DocumentReference,
  access: RowAccess,
  action: AccessTarget['action'],
): Promise<boolean> {
  if (!access.isEnabled) return true
  const [base, document] = await Promise.all([
    rows.get(tables.knowledgeBases, [workspaceId, knowledgeBaseId]),
    rows.get(tables.documents, [workspaceId, knowledgeBaseId, documentId]),
  ])
  if (!base) return false
  return access.canRead(base.row, { action }, visibility => {
    if (!visibility.filter) return true
    if (!document || !existedAt(document.row, createdAt)) return false
    return documentMatcher(visibility)(document.row)
  })
}
