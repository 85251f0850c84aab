import type { RowReader, Stored } from '../storage/rows.ts'
import { type DocumentRow, tables } from '../storage/tables.ts'
import type { Visibility } from '../storage/visibility.ts'
import { documentMatcher } from './policy/document-fields.ts'
import { documentTags } from './policy/document-tags.ts'
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
 * Returns a document if a caller may see it. If its tags show that it is hidden, it is not read, so that the time does not depend
 * on its size.
 */
export async function findVisibleDocument(
  rows: RowReader,
  {
    workspaceId,
    knowledgeBaseId,
    documentId,
  }: Pick<DocumentRow, 'workspaceId' | 'knowledgeBaseId' | 'documentId'>,
  visibility: Visibility,
): Promise<Stored<DocumentRow> | undefined> {
  const key = [workspaceId, knowledgeBaseId, documentId]
  const stored = await rows.get(tables.documents, key, documentTags(knowledgeBaseId, visibility))
  return stored && documentMatcher(visibility)(stored.row) ? stored : undefined
}

/**
 * Returns true if a caller may see the document that something refers to. A caller who may not see all rows cannot see
 * what refers to a missing document, even if a later document has its ID.
 *
 * @throws policy_principal_required  row-level access is on, and the caller is not a principal
 */
export async function isDocumentVisible(
  rows: RowReader,
  { workspaceId, knowledgeBaseId, documentId, createdAt }: DocumentReference,
  access: RowAccess,
  action: AccessTarget['action'],
): Promise<boolean> {
  if (!access.isEnabled) return true
  const base = await rows.get(tables.knowledgeBases, [workspaceId, knowledgeBaseId])
  if (!base) return false
  return access.canRead(base.row, { action }, async visibility => {
    if (!visibility.filter) return true
    if (knowledgeBaseId === null || documentId === null) return false
    const key = { workspaceId, knowledgeBaseId, documentId }
    const document = await findVisibleDocument(rows, key, visibility)
    return document !== undefined && existedAt(document.row, createdAt)
  })
}
