import { policyPayload } from '../../access/policy/document-fields.ts'
import { fullVisibility } from '../../access/row-access.ts'
import type { TextPlace } from '../../base/text-layout.ts'
import type { Document } from '../../contract/documents.ts'
import { gapPayloadKeys, placesPayloadKey, startPayloadKey } from '../../contract/fields.ts'
import { placePayloadKeys, sectionPayloadKey, tableHeadsPayloadKey } from '../../contract/payload-keys.ts'
import type { ContentRecord, ContentWrite, Payload } from '../../storage/content.ts'
import { revisionOf, type Stored, type Write } from '../../storage/rows.ts'
import { type DocumentRow, tables } from '../../storage/tables.ts'
import type { ChunkedText, TextChunk } from '../chunk-text.ts'
import { keyOf } from '../document-key.ts'
import type { BaseContext } from '../knowledge-bases.ts'
import type { EmbeddedVectors } from '../passage-operations.ts'
import { contextOfChunk, requireInheritedSize, titleOfPayload } from '../payload.ts'
import type { AcceptedIngest } from './accept-text.ts'

/** The chunks of a text and their vectors, in the same order. */
export type EmbeddedChunks = ChunkedText & EmbeddedVectors

/** Creates the document for an accepted text. */
export function createDocument(
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

/**
 * Returns writes that delete documents and their chunks. The writes fail if the knowledge base does not exist or has changed,
 * because chunks may have been made for other services, or if a document has changed: the caller may no longer see it.
 */
export function documentDeletionWrites(
  { base, revision, key }: BaseContext,
  documents: readonly Stored<DocumentRow>[],
): { rows: Write[]; changes: ContentWrite[] } {
  const baseKey = [base.workspaceId, base.knowledgeBaseId]
  return {
    rows: [
      { op: 'require', table: tables.knowledgeBases, key: baseKey, ...revision },
      ...documents.map(
        (document): Write => ({
          op: 'delete',
          table: tables.documents,
          key: keyOf(document.row),
          ...revisionOf(document),
        }),
      ),
    ],
    changes: documents.map(({ row }) => ({ op: 'deleteDocument', ...key, documentId: row.documentId })),
  }
}

/**
 * Returns the changes that store the chunks of a new document. The first fails with `stale` if a record has the ID of a
 * chunk, and the second if the vector space of the chunks is outdated.
 *
 * @throws invalid_metadata  the metadata is too large for the number of chunks
 */
export function chunkInsertion(
  { key }: BaseContext,
  document: Document,
  prepared: EmbeddedChunks,
): ContentWrite[] {
  const { generation } = prepared
  const records = toContentRecords(document, prepared)
  const absent = records.map(({ id }) => ({ id, documentId: null, exists: false, isVisible: true }))
  return [
    { op: 'requireOwners', ...key, owners: absent, visibility: fullVisibility() },
    { op: 'upsert', ...key, generation, records },
  ]
}

function toContentRecords(document: Document, prepared: EmbeddedChunks): ContentRecord[] {
  const { knowledgeBaseId, documentId } = document
  requireInheritedSize(document, prepared.chunks.length)
  const title = titleOfPayload(document.metadata)
  return prepared.chunks.map((chunk, chunkIndex) => ({
    id: `${documentId}:${chunkIndex}`,
    documentId,
    chunkIndex,
    title,
    context: contextOfChunk(title, chunk),
    text: chunk.text,
    payload: {
      ...policyPayload(document),
      knowledgeBaseId,
      documentId,
      chunkIndex,
      'chunker.id': prepared.chunkerId,
      ...chunkPayload(chunk),
    },
    vector: prepared.vectors[chunkIndex]!,
  }))
}

/** Returns the payload fields that a chunk has because of its position in the text. */
export function chunkPayload({
  start,
  section,
  tableHeads,
  place,
  innerPlaces,
  textBefore,
  textAfter,
}: Omit<TextChunk, 'text'>): Payload {
  return {
    [startPayloadKey]: start,
    ...(section !== undefined && { [sectionPayloadKey]: section }),
    ...(tableHeads !== undefined && { [tableHeadsPayloadKey]: tableHeads }),
    ...(place && placePayload(place)),
    ...(innerPlaces && { [placesPayloadKey]: innerPlaces }),
    ...(textBefore !== undefined && { [gapPayloadKeys.before]: textBefore }),
    ...(textAfter !== undefined && { [gapPayloadKeys.after]: textAfter }),
  }
}

function placePayload(place: TextPlace): Payload {
  return Object.fromEntries(
    (['page', 'slide', 'sheet'] as const).flatMap(kind =>
      place[kind] === undefined ? [] : [[placePayloadKeys[kind], place[kind]]],
    ),
  )
}
