import type { Caller } from '../access/caller.ts'
import { findVisibleDocument } from '../access/document-visibility.ts'
import type { RowAccess } from '../access/row-access.ts'
import { type Clock, timestamp } from '../base/clock.ts'
import { WbError } from '../contract/errors.ts'
import type { Upsert } from '../contract/records.ts'
import type { CollectionKey, ContentRecord, ContentWrite, RecordOwner } from '../storage/content.ts'
import { createMatcher } from '../storage/filter.ts'
import { type RowStore, revisionOf, type Stored, type Write } from '../storage/rows.ts'
import { type DocumentRow, tables } from '../storage/tables.ts'
import type { Visibility } from '../storage/visibility.ts'
import type { BaseKey, DocumentKey } from './document-key.ts'
import type { ContentCaller } from './documents.ts'
import type { RefitAfter } from './fitting.ts'
import { baseCollectionMissing, rejectRawVector, requireFieldDimension, requireImported } from './guards.ts'
import type { BaseContext, KnowledgeBases } from './knowledge-bases.ts'
import { ownerPayload } from './ownership.ts'
import type { EmbeddedVectors } from './passage-operations.ts'
import { titleOfPayload } from './payload.ts'
import { documentsOfChunkIds, entriesWithId, requireNotInTrash } from './trash/reserved-ids.ts'
import { retryOnSpaceChange, type VectorSpace } from './vector-space.ts'

interface RecordsParts {
  readonly rows: RowStore
  readonly clock: Clock
  readonly bases: KnowledgeBases
  readonly space: VectorSpace
  /** Called before records are written. Resolves when the knowledge base accepts new records. */
  readonly whenWritable: (context: BaseContext) => Promise<void>
  /** Called after records were stored or deleted. */
  readonly onRecordsChanged: (context: BaseContext) => Promise<void>
  readonly learnableRows: (key: CollectionKey) => Promise<Visibility>
  readonly refitAfter: RefitAfter
}

/**
 * Maximum number of attempts. A write is retried if the records or documents changed in the meantime.
 */
const attemptsMax = 20

/**
 * Writes the records that clients store directly.
 *
 * A client can also replace or delete a chunk of a document. The same transaction then changes the document: it reduces
 * the chunk count, and clears the unique keys, so that the original text can be ingested again.
 */
export class Records {
  constructor(private readonly parts: RecordsParts) {}

  /**
   * Stores all records in one transaction. Replaces existing records that have the same IDs.
   *
   * @returns number of records
   * @throws validation_error        an ID appears twice
   * @throws dimension_mismatch, vector_collection_not_allowed, vector_collection_required
   * @throws embedding_unavailable, embedding_dimension_mismatch
   * @throws conflict                an ID is that of a chunk of a document in the trash
   * @throws collection_unavailable  the collection is missing, or concurrent changes prevented every attempt
   */
  async upsert(workspaceId: string, knowledgeBaseId: string, body: Upsert, caller: Caller): Promise<number> {
    requireUniqueIds(body.records)
    const ids = body.records.map(({ id }) => id)
    const { bases, whenWritable, onRecordsChanged } = this.parts
    const address = { workspaceId, knowledgeBaseId }
    const write = async () => {
      const context = await bases.openContext(workspaceId, knowledgeBaseId)
      const { vectors, generation } = await this.embed(context, body, caller.signal)
      await whenWritable(context)
      // Read last, because embedding can take seconds, so that a revocation in the meantime takes effect.
      await caller.reauthorize()
      const access = await caller.rowAccess(workspaceId)
      const base = await bases.get(workspaceId, knowledgeBaseId)
      requireImported(base)
      const records = composeRecords(body, vectors, access)
      const upsert = { op: 'upsert' as const, ...context.key, generation, records }
      const rowChange = access.openChange(base, { action: 'ingest' })
      const store = () => this.write({ ...context, base }, ids, upsert, rowChange.visibility)
      const failure = await ((await this.hidesLearnableRecord(context, records))
        ? this.parts.refitAfter([context.key], store)
        : store())
      rowChange.authorize(failure !== 'hidden')
      if (failure === 'absent') throw baseCollectionMissing(context.base)
      if (failure) return undefined
      await onRecordsChanged(context)
      return true
    }
    await bases.withDeletionCheck(address, () => retryOnSpaceChange(write))
    return ids.length
  }

  /** Returns true if a write replaces a record that the built-in embedder may learn from with one that it may not learn from. */
  private async hidesLearnableRecord(
    { key, store, isFittedByRuntime }: BaseContext,
    records: readonly ContentRecord[],
  ): Promise<boolean> {
    if (!isFittedByRuntime) return false
    const learnable = await this.parts.learnableRows(key)
    const isLearnable = createMatcher(learnable.filter)
    const hidden = records.filter(({ payload }) => !isLearnable(payload)).map(({ id }) => id)
    if (hidden.length === 0) return false
    const replaced = await store.owners(key, hidden, learnable)
    return replaced.some(({ exists, isVisible }) => exists && isVisible)
  }

  /** @returns true if the record existed, and the caller could see it */
  async delete(
    { workspaceId, knowledgeBaseId, recordId }: RecordKey,
    caller: ContentCaller,
  ): Promise<boolean> {
    const context = await this.parts.bases.openContext(workspaceId, knowledgeBaseId)
    const access = await caller.rowAccess(workspaceId)
    const use = { action: 'delete', resourceId: recordId } as const
    requireImported(context.base)
    const rowChange = access.openChange(context.base, use)
    const deletion = { op: 'deleteRecord' as const, ...context.key, id: recordId }
    const failure = await this.write(context, [recordId], deletion, rowChange.visibility)
    if (!failure) {
      rowChange.authorize(true)
      await this.parts.onRecordsChanged(context)
    }
    // A missing record is recorded like a hidden one, because the caller can read its own decisions.
    else if (failure === 'hidden' || failure === 'absent') access.recordDenial(context.base, use)
    return !failure
  }

  /**
   * Applies a change that replaces or deletes the records with the given IDs.
   *
   * @returns the reason why the write failed, `hidden` if the caller may not see one of the records; undefined on
   *          success
   * @throws knowledge_base_not_found
   * @throws conflict                an ID is that of a chunk of a document in the trash
   * @throws collection_unavailable  concurrent changes prevented every attempt
   */
  private async write(
    context: BaseContext,
    ids: readonly string[],
    change: ContentWrite,
    visibility: Visibility,
  ) {
    const { base, store, key } = context
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      const owners = await store.owners(key, ids, visibility)
      if (owners.some(({ isVisible }) => !isVisible)) return 'hidden'
      // Without a write, so that a missing record takes as long as a hidden one.
      if (change.op === 'deleteRecord' && !owners[0]!.exists) return 'absent'
      const newIds = owners.flatMap(({ id, exists }) => (exists ? [] : [id]))
      const documents = documentsOfChunkIds(base, newIds)
      if (!(await this.seesAll(documents, visibility))) return 'hidden'
      const rows = [
        requireBaseWrite(context),
        ...documents.map(requireNotInTrash),
        ...(await this.removedChunkWrites(context, owners)),
      ]
      const outcome = await store.write([{ op: 'requireOwners', ...key, owners, visibility }, change], rows)
      if (outcome.ok) return undefined
      if (outcome.at === 0) await this.parts.bases.get(base.workspaceId, base.knowledgeBaseId)
      if (outcome.reason === 'present') {
        const document = documents[outcome.at - 1]!
        if (!(await entriesWithId(this.parts.rows, document, visibility))) return 'hidden'
        throw chunkInTrash(document.documentId)
      }
      const isCollectionMissing = outcome.at === rows.length && outcome.reason === 'absent'
      if (isCollectionMissing || outcome.at > rows.length) return outcome.reason
    }
    throw new WbError('collection_unavailable', 'the records keep changing; nothing was written')
  }

  /**
   * Returns true if the caller may see all documents, also those in the trash. Otherwise, a record with the ID of a later chunk
   * could prevent the next ingest of a document that it cannot see.
   */
  private async seesAll(documents: readonly DocumentKey[], visibility: Visibility): Promise<boolean> {
    const { rows } = this.parts
    if (!visibility.filter) return true
    for (const document of documents) {
      const live = await findVisibleDocument(rows, document, visibility)
      if (!live && !(await entriesWithId(rows, document, visibility))?.length) return false
    }
    return true
  }

  /** Returns the writes that reduce the chunk counts of the documents to which the removed chunks belong. */
  private async removedChunkWrites({ base }: BaseContext, owners: readonly RecordOwner[]): Promise<Write[]> {
    const removedChunks = new Map<string, number>()
    for (const { documentId } of owners)
      if (documentId !== null) removedChunks.set(documentId, (removedChunks.get(documentId) ?? 0) + 1)
    const writes: Write[] = []
    for (const [documentId, chunks] of removedChunks) {
      const key = [base.workspaceId, base.knowledgeBaseId, documentId]
      const stored = await this.parts.rows.get(tables.documents, key)
      // An attached collection may contain chunks of documents that are not in this knowledge base.
      if (stored) writes.push(this.subtractChunks(stored, chunks))
    }
    return writes
  }

  private subtractChunks(stored: Stored<DocumentRow>, chunks: number): Write {
    const { row } = stored
    const chunkTotal = row.chunkTotal === null ? null : Math.max(0, row.chunkTotal - chunks)
    const updatedAt = timestamp(this.parts.clock)
    const changed = { ...row, chunkTotal, updatedAt, ingestKey: null, nameKey: null }
    return { op: 'replace', table: tables.documents, row: changed, ...revisionOf(stored) }
  }

  /** Returns the vectors of the records, in their order. */
  private async embed(context: BaseContext, body: Upsert, signal: AbortSignal): Promise<EmbeddedVectors> {
    body.records.forEach((record, index) => {
      if (!record.vector) return
      rejectRawVector(`records.${index}.vector`, context)
      requireFieldDimension(`records.${index}.vector`, record.vector.length, context.collection.dimension)
    })
    const texts = body.records.filter(record => record.text !== undefined)
    const passages = texts.map(record => ({ title: titleOfPayload(record.payload), text: record.text! }))
    const { generation, vectors } = await this.parts.space.embed(context, passages, 'document', signal)
    const embedded = vectors.values()
    return { generation, vectors: body.records.map(({ vector }) => vector ?? embedded.next().value!) }
  }
}

function composeRecords(
  { records }: Upsert,
  vectors: EmbeddedVectors['vectors'],
  access: RowAccess,
): ContentRecord[] {
  return records.map(({ id, text, payload, visibleTo }, at) => ({
    id,
    documentId: null,
    chunkIndex: null,
    title: titleOfPayload(payload),
    text: text ?? null,
    payload: { ...payload, ...ownerPayload(access, visibleTo) },
    vector: vectors[at]!,
  }))
}

/**
 * Returns a check that the knowledge base still exists. It is not enough to check the collection, because a new
 * collection may have the same name.
 */
function requireBaseWrite({ base: { workspaceId, knowledgeBaseId } }: BaseContext): Write {
  return { op: 'require', table: tables.knowledgeBases, key: [workspaceId, knowledgeBaseId] }
}

function chunkInTrash(documentId: string): WbError {
  return new WbError(
    'conflict',
    `a record would have the ID of a chunk of the deleted document '${documentId}'`,
    {
      hint: 'Use another ID, restore the document, or delete it permanently.',
    },
  )
}

interface RecordKey extends BaseKey {
  readonly recordId: string
}

function requireUniqueIds(records: Upsert['records']): void {
  const seen = new Map<string, number>()
  records.forEach(({ id }, index) => {
    const first = seen.get(id)
    if (first !== undefined)
      throw new WbError('validation_error', `records.${index}.id: repeats records.${first}.id`)
    seen.set(id, index)
  })
}
