import { newId } from '../../base/id.ts'
import type { Document, Ingest } from '../../contract/documents.ts'
import { WbError } from '../../contract/errors.ts'
import type { RowStore, Stored } from '../../storage/rows.ts'
import { type DocumentRow, tables } from '../../storage/tables.ts'
import type { BaseContext } from '../knowledge-bases.ts'

/** Maximum number of documents with the same file name that are read. */
const sameNameMax = 1_000

/** A text that has passed the checks of {@link acceptText}, but has not been chunked yet. */
export interface AcceptedIngest {
  readonly context: BaseContext
  readonly body: Ingest
  readonly documentId: string
  readonly contentHash: string
  readonly ingestKey: string
  readonly nameKey: string | null
  /** Documents to delete when the new document is stored. */
  readonly replaced: readonly DocumentRow[]
}

/** An existing document with the same text or file name. */
export interface ExistingDocument {
  readonly kind: 'existing'
  readonly document: Document
  readonly outcome: 'duplicate' | 'name_conflict'
}

/**
 * Checks if there is already a document with the same text, file name or ID. This includes documents that are still
 * being ingested.
 *
 * @returns the existing document if the new text must not be ingested
 * @throws conflict  another document has the requested ID
 * @see docs/http.md#documents-and-chunks
 */
export async function acceptText(
  rows: RowStore,
  context: BaseContext,
  body: Ingest,
  contentHash: string,
): Promise<AcceptedIngest | ExistingDocument> {
  const prefix = keyPrefix(context)
  const ingestKey = `${prefix}:${contentHash}`
  const duplicate = await findByIngestKey(rows, ingestKey)
  if (duplicate) return { kind: 'existing', document: toDocument(duplicate), outcome: 'duplicate' }
  const sameName = (await documentsWithName(rows, context, body.sourceFilename)).map(({ row }) => row)
  const conflicting = sameName.find(row => row.status !== 'failed')
  if (conflicting && !body.overwriteOnNameConflict)
    return { kind: 'existing', document: toDocument(conflicting), outcome: 'name_conflict' }
  const documentId = body.documentId ?? newId()
  const existing = body.documentId && (await findById(rows, context, documentId))
  if (existing && existing.status !== 'failed') throw documentIdTaken(documentId)
  const hasSameName = sameName.some(row => row.documentId === documentId)
  const replaced = existing && !hasSameName ? [...sameName, existing] : sameName
  const nameKey = nameKeyOf(context, body.sourceFilename)
  return { context, body, documentId, contentHash, ingestKey, nameKey, replaced }
}

/** Returns the unique key of a file name in a knowledge base; null without a file name. */
export function nameKeyOf(context: BaseContext, name: string | null): string | null {
  return name ? `${keyPrefix(context)}:${name}` : null
}

/** Returns the documents with a file name, oldest first. */
export async function documentsWithName(
  rows: RowStore,
  { base: { workspaceId, knowledgeBaseId } }: BaseContext,
  name: string | null,
): Promise<Stored<DocumentRow>[]> {
  if (!name) return []
  const prefix = [workspaceId, knowledgeBaseId, name]
  return rows.list(tables.documents, { index: 'byFilename', prefix, limit: sameNameMax })
}

/** Returns a document without its internal fields. */
function toDocument({ ingestKey: _, nameKey: __, jobId: ___, ...document }: DocumentRow): Document {
  return document
}

export function documentIdTaken(documentId: string): WbError {
  return new WbError('conflict', `document with id '${documentId}' already exists`)
}

/**
 * Returns the prefix of unique keys. Includes the workspace, because knowledge base IDs are unique only in a workspace.
 */
function keyPrefix({ base }: BaseContext): string {
  return `${base.workspaceId}:${base.knowledgeBaseId}:`
}

async function findById(
  rows: RowStore,
  { base }: BaseContext,
  documentId: string,
): Promise<DocumentRow | undefined> {
  const key = [base.workspaceId, base.knowledgeBaseId, documentId]
  return (await rows.get(tables.documents, key))?.row
}

async function findByIngestKey(rows: RowStore, ingestKey: string): Promise<DocumentRow | undefined> {
  const query = { index: 'byIngestKey', prefix: [ingestKey], limit: 1 }
  const [stored] = await rows.list(tables.documents, query)
  return stored?.row
}
