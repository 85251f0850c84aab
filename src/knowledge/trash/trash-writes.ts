import { fullVisibility } from '../../access/row-access.ts'
import { newId } from '../../base/id.ts'
import { encodeVectorText } from '../../base/vector-text.ts'
import type { ContentWrite } from '../../storage/content.ts'
import type { Write } from '../../storage/rows.ts'
import { requireListing } from '../../storage/store-features.ts'
import {
  type DeletedChunksRow,
  type DeletedDocumentRow,
  type DocumentRow,
  tables,
} from '../../storage/tables.ts'
import type { BaseContext } from '../knowledge-bases.ts'

/** Number of chunks to read at once, and to store in a row. */
const chunksPerRow = 64

/**
 * Returns writes that keep a document and its chunks in the trash. They belong to the transaction that deletes the document, before
 * its chunks are deleted. They fail if a chunk was replaced or deleted in the meantime.
 *
 * Keeps vectors of providers. Those of a space that the runtime fits are computed again, because its model can change.
 */
export async function trashWrites(
  { store, key, collection, isFittedByRuntime }: BaseContext,
  document: DocumentRow,
  deletion: Pick<DeletedDocumentRow, 'deletionId' | 'deletedAt'>,
): Promise<{ rows: Write[]; changes: ContentWrite[] }> {
  const { workspaceId, knowledgeBaseId, documentId } = document
  const { generation } = collection
  const entryId = newId()
  const row: DeletedDocumentRow = { ...document, ...deletion, entryId, generation }
  const visibility = fullVisibility()
  const records = await requireListing(store).numbersByDocument(key, {
    documentId,
    limit: Number.MAX_SAFE_INTEGER,
    visibility,
  })
  const rows: Write[] = [{ op: 'insert', table: tables.deletedDocuments, row }]
  for (let start = 0; start < records.length; start += chunksPerRow) {
    const slice = records.slice(start, start + chunksPerRow)
    const views = await store.read(key, slice, { vectors: !isFittedByRuntime, visibility })
    const chunks = views.map(({ id, chunkIndex, context, text, payload, vector }) => ({
      id,
      chunkIndex,
      context,
      text,
      payload,
      vector: vector ? encodeVectorText(vector) : null,
    }))
    const chunksRow: DeletedChunksRow = { workspaceId, knowledgeBaseId, entryId, start, chunks }
    rows.push({ op: 'insert', table: tables.deletedChunks, row: chunksRow })
  }
  return { rows, changes: [{ op: 'requireRecords', ...key, records }] }
}
