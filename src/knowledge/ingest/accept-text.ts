import { newId } from '../../base/id.ts'
import type { Document, Ingest } from '../../contract/documents.ts'
import { WbError } from '../../contract/errors.ts'
import type { RowStore, Stored } from '../../storage/rows.ts'
import { type DocumentRow, tables } from '../../storage/tables.ts'
import type { BaseContext } from '../knowledge-bases.ts'

/** Maximum number of documents of one file name to read. */
const namesakesMax = 1_000

/** Facts about a text before it is chunked. */
export interface AcceptedIngest {
  readonly context: BaseContext
  readonly body: Ingest
  readonly documentId: string
  readonly contentHash: string
  readonly ingestKey: string
  readonly nameKey: string | null
  /** Documents that this one replaces. */
  readonly replaced: readonly DocumentRow[]
}

/** An existing document with the same text or file name. */
export interface ExistingDocument {
  readonly kind: 'existing'
  readonly document: Document
  readonly outcome: 'duplicate' | 'name_conflict'
}

/**
 * Compares a text with the existing documents, including those that a job still works on.
 *
 * @throws conflict  the document id is taken
 * @see docs/http.md#documents-and-chunks
 */
export async function acceptText(
  rows: RowStore,
  context: BaseContext,
  body: Ingest,
  contentHash: string,
): Promise<AcceptedIngest | ExistingDocument> {
  const domain = keyPrefix(context)
  const ingestKey = `${domain}:${contentHash}`
  const same = await findByIngestKey(rows, ingestKey)
  if (same) return { kind: 'existing', document: toDocument(same), outcome: 'duplicate' }
  const namesakes = (await namesakesOf(rows, context, body.sourceFilename)).map(({ row }) => row)
  const rival = namesakes.find(row => row.status !== 'failed')
  if (rival && !body.overwriteOnNameConflict)
    return { kind: 'existing', document: toDocument(rival), outcome: 'name_conflict' }
  const documentId = body.documentId ?? newId()
  const taken = body.documentId && (await findById(rows, context, documentId))
  if (taken && taken.status !== 'failed') throw documentIdTaken(documentId)
  const isNamesake = namesakes.some(row => row.documentId === documentId)
  const replaced = taken && !isNamesake ? [...namesakes, taken] : namesakes
  const nameKey = nameKeyOf(context, body.sourceFilename)
  return { context, body, documentId, contentHash, ingestKey, nameKey, replaced }
}

/** Returns a unique key for a file name in a knowledge base; null for a document without a file name. */
export function nameKeyOf(context: BaseContext, name: string | null): string | null {
  return name ? `${keyPrefix(context)}:${name}` : null
}

/** Returns the documents of one file name, oldest first. */
export async function namesakesOf(
  rows: RowStore,
  { base: { workspaceId, knowledgeBaseId } }: BaseContext,
  name: string | null,
): Promise<Stored<DocumentRow>[]> {
  if (!name) return []
  const prefix = [workspaceId, knowledgeBaseId, name]
  return rows.list(tables.documents, { index: 'byFilename', prefix, limit: namesakesMax })
}

/** Returns a document without its internal fields. */
function toDocument({ ingestKey: _, nameKey: __, jobId: ___, ...document }: DocumentRow): Document {
  return document
}

export function documentIdTaken(documentId: string): WbError {
  return new WbError('conflict', `document with id '${documentId}' already exists`)
}

/** Returns a prefix for keys. It includes the workspace, because ids of knowledge bases can repeat. */
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
