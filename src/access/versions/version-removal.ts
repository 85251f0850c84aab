import type { RowStore, Write } from '../../storage/rows.ts'
import { documentVersionKinds, tables } from '../../storage/tables.ts'
import { deleteFirst } from '../record-retention.ts'
import { versionsStartSetting } from './access-history.ts'
import { documentTarget } from './version-write.ts'

interface BaseKey {
  readonly workspaceId: string
  readonly knowledgeBaseId: string
}

interface DocumentKey extends BaseKey {
  readonly documentId: string
}

/**
 * Deletes the versions of a deleted document in small transactions, because there can be many. Keeps them while a document or an
 * entry of the trash has its ID, because they can belong to it.
 */
export async function deleteDocumentVersions(
  rows: RowStore,
  { workspaceId, knowledgeBaseId, documentId }: DocumentKey,
): Promise<void> {
  const key = [workspaceId, knowledgeBaseId, documentId]
  if (await rows.get(tables.documents, key)) return
  if ((await rows.count(tables.deletedDocuments, 'byDocument', key)) > 0) return
  const target = documentTarget(knowledgeBaseId, documentId)
  for (const kind of documentVersionKinds)
    await deleteFirst(rows, tables.accessVersions, { index: 'byTarget', prefix: [workspaceId, kind, target] })
}

/** Deletes the versions of a deleted knowledge base and of its documents in small transactions. */
export async function deleteKnowledgeBaseVersions(
  rows: RowStore,
  { workspaceId, knowledgeBaseId }: BaseKey,
): Promise<void> {
  const ofBase = { index: 'byTarget', prefix: [workspaceId, 'knowledgeBase', knowledgeBaseId] }
  await deleteFirst(rows, tables.accessVersions, ofBase)
  for (const kind of documentVersionKinds)
    await deleteFirst(rows, tables.accessVersions, {
      index: 'byTarget',
      prefix: [workspaceId, kind],
      after: [documentTarget(knowledgeBaseId, ''), '', 0],
      through: documentTarget(knowledgeBaseId, '\uffff'),
    })
}

/** Returns the writes that delete what the retention of versions has stored about a workspace. */
export async function versionsStartRemoval(rows: RowStore, workspaceId: string): Promise<Write[]> {
  const key = [versionsStartSetting(workspaceId)]
  return (await rows.get(tables.settings, key)) ? [{ op: 'delete', table: tables.settings, key }] : []
}
