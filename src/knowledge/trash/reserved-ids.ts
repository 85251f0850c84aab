import { documentMatcher } from '../../access/policy/document-fields.ts'
import { type RowStore, revisionOf, type Stored, type Write } from '../../storage/rows.ts'
import { type DeletedDocumentRow, tables } from '../../storage/tables.ts'
import type { Visibility } from '../../storage/visibility.ts'
import { type BaseKey, type DocumentKey, keyOf } from '../document-key.ts'

/** Entries of the trash with the same document ID. Earlier versions could create several. */
const entriesMax = 100
const chunkId = /^([0-9a-f-]{36}):\d+$/i

/**
 * Returns the entries of the trash with the ID of a new document, which are deleted when it is stored; undefined if the caller
 * may not see one of them. The ID is then taken, like that of a hidden document: otherwise, a caller could prevent the restore of
 * a document that it cannot see.
 */
export async function entriesWithId(
  rows: RowStore,
  documentKey: DocumentKey,
  visibility: Visibility,
): Promise<Stored<DeletedDocumentRow>[] | undefined> {
  const entries = await rows.list(tables.deletedDocuments, {
    index: 'byDocument',
    prefix: keyOf(documentKey),
    limit: entriesMax,
  })
  const isVisible = documentMatcher(visibility)
  return entries.every(({ row }) => isVisible(row)) ? entries : undefined
}

/** Returns the writes that remove entries from the trash, and fail if it contains another one with the ID of the document. */
export function idReservation(
  documentKey: DocumentKey,
  entries: readonly Stored<DeletedDocumentRow>[],
): Write[] {
  return [...entries.flatMap(entryDeletion), requireNotInTrash(documentKey)]
}

/** Returns the writes that remove an entry. They fail if it has changed. */
export function entryDeletion(entry: Stored<DeletedDocumentRow>): Write[] {
  const key = [entry.row.workspaceId, entry.row.entryId]
  return [
    { op: 'delete', table: tables.deletedDocuments, key, ...revisionOf(entry) },
    chunksDeletion(entry.row),
  ]
}

export function chunksDeletion({ workspaceId, entryId }: DeletedDocumentRow): Write {
  return { op: 'deleteAll', table: tables.deletedChunks, index: 'byEntry', prefix: [workspaceId, entryId] }
}

/** Returns a write that fails with `present` if a document in the trash has an ID. */
export function requireNotInTrash(documentKey: DocumentKey): Write {
  return {
    op: 'requireNone',
    table: tables.deletedDocuments,
    index: 'byDocument',
    prefix: keyOf(documentKey),
  }
}

/** Returns the documents whose chunks could have the IDs of records. */
export function documentsOfChunkIds(
  { workspaceId, knowledgeBaseId }: BaseKey,
  ids: readonly string[],
): DocumentKey[] {
  const documentIds = new Set(ids.flatMap(id => chunkId.exec(id)?.[1] ?? []))
  return Array.from(documentIds, documentId => ({ workspaceId, knowledgeBaseId, documentId }))
}
