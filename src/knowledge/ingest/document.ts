import type { Document } from '../../contract/documents.ts'
import type { ContentRecord, ContentWrite } from '../../storage/content.ts'
import type { Write } from '../../storage/rows.ts'
import { type DocumentRow, tables } from '../../storage/tables.ts'
import type { BaseContext } from '../bases.ts'
import type { Embedded, Prepared } from '../passages.ts'
import { documentPayload, titleOf } from '../payload.ts'
import type { AcceptedIngest } from './acceptance.ts'

/** The chunks of a text, each with its vector. */
export type Embeddings = Omit<Prepared, 'embedded'> & Embedded

/** Creates the row of an accepted text. */
export function documentRow(
  { body, context, documentId, contentHash }: AcceptedIngest,
  state: Partial<Document> & Pick<Document, 'status' | 'updatedAt'>,
): Document {
  return {
    workspaceId: context.base.workspaceId,
    knowledgeBaseId: context.base.knowledgeBaseId,
    documentId,
    sourceDocId: body.sourceDocId,
    sourceFilename: body.sourceFilename,
    fileType: body.fileType,
    fileSize: body.fileSize,
    contentHash,
    chunkTotal: null,
    ingestedAt: null,
    errorMessage: null,
    metadata: body.metadata,
    visibleTo: body.visibleTo ?? null,
    ownerPrincipalId: body.ownerPrincipalId ?? null,
    ...state,
  }
}

/** Returns the writes that delete documents with their chunks; they fail if the knowledge base is gone. */
export function deletionOf(
  { base, key }: BaseContext,
  documents: readonly DocumentRow[],
): { rows: Write[]; changes: ContentWrite[] } {
  const place = [base.workspaceId, base.knowledgeBaseId]
  return {
    rows: [
      { op: 'require', table: tables.knowledgeBases, key: place },
      ...documents.map(
        ({ documentId }): Write => ({ op: 'delete', table: tables.documents, key: [...place, documentId] }),
      ),
    ],
    changes: documents.map(({ documentId }) => ({ op: 'deleteDocument', ...key, documentId })),
  }
}

/** Returns the change that stores the chunks of a document. It fails if their vector space is outdated. */
export function upsertOf({ key }: BaseContext, document: Document, prepared: Embeddings): ContentWrite {
  const { generation } = prepared
  return { op: 'upsert', ...key, generation, records: recordsOf(document, prepared) }
}

function recordsOf(document: Document, prepared: Embeddings): ContentRecord[] {
  const { knowledgeBaseId, documentId } = document
  const title = titleOf(document.metadata)
  return prepared.chunks.map((text, chunkIndex) => ({
    id: `${documentId}:${chunkIndex}`,
    documentId,
    chunkIndex,
    title,
    text,
    payload: {
      ...documentPayload(document),
      knowledgeBaseId,
      documentId,
      chunkIndex,
      'chunker.id': prepared.chunkerId,
    },
    vector: prepared.vectors[chunkIndex]!,
  }))
}
