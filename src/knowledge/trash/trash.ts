import type { Caller } from '../../access/caller.ts'
import { documentMatcher } from '../../access/policy/document-fields.ts'
import { documentTags } from '../../access/policy/document-tags.ts'
import { RecordRetention } from '../../access/record-retention.ts'
import { fullVisibility, type UndecidedChange } from '../../access/row-access.ts'
import { deleteDocumentVersions } from '../../access/versions/version-removal.ts'
import { type Clock, timestamp } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import { decodeVectorText } from '../../base/vector-text.ts'
import { type Document, folderKey } from '../../contract/documents.ts'
import { WbError } from '../../contract/errors.ts'
import type { PageQuery } from '../../contract/page.ts'
import type { TrashEntry } from '../../contract/trash.ts'
import { type ContentRecord, type ContentWrite, embeddedTitle } from '../../storage/content.ts'
import type { Pager, RowPage } from '../../storage/cursor.ts'
import type { RowStore, Stored, Write } from '../../storage/rows.ts'
import { type DeletedChunk, type DeletedDocumentRow, type DocumentRow, tables } from '../../storage/tables.ts'
import type { BaseKey } from '../document-key.ts'
import type { ContentCaller } from '../documents.ts'
import { concurrentChange, requireImported } from '../guards.ts'
import { documentIdTaken, restoredKeys, toDocument } from '../ingest/accept-text.ts'
import type { BaseContext, KnowledgeBases } from '../knowledge-bases.ts'
import { limitsByWorkspace } from '../limits-by-workspace.ts'
import { authorizeOwner } from '../ownership.ts'
import { titleOfPayload, updateInheritedFields } from '../payload.ts'
import { retryOnSpaceChange, undefinedIfSpaceChanged, type VectorSpace } from '../vector-space.ts'
import { chunksDeletion, entryDeletion } from './reserved-ids.ts'

/** Maximum number of attempts. A restore is retried if the same rows or the vector space changed in the meantime. */
const attemptsMax = 20
/** Number of rows with chunks to read at once. */
const chunkRowsPerRead = 8
/** Number of passages that are embedded together, so that queries can be embedded in between. */
const passagesPerEmbedding = 256
const hourMs = 3_600_000
const unexpectedFailure = { code: 'internal_error', message: 'the document could not be changed' }

export interface TrashParts {
  readonly rows: RowStore
  readonly pager: Pager
  readonly clock: Clock
  readonly log: Log
  readonly bases: KnowledgeBases
  readonly space: VectorSpace
  readonly trash: {
    /** Hours for which deleted documents are kept; 0 to delete documents permanently. */
    readonly retentionHours: number
    /** Maximum number of deleted documents of all workspaces. */
    readonly documentsMax: number
  }
  /** Called before each write of chunks. Resolves when the knowledge base accepts new chunks. */
  readonly whenWritable: (context: BaseContext) => Promise<void>
  /** Called after records were stored. */
  readonly onRecordsChanged: (context: BaseContext) => Promise<void>
}

/** The IDs of a deleted document. */
export interface EntryKey extends BaseKey {
  readonly entryId: string
}

type ChangingCaller = ContentCaller & Pick<Caller, 'reauthorize'>
type RestoringCaller = ChangingCaller & Pick<Caller, 'auth' | 'signal'>

/** The chunks of a deleted document, with the generation of their vectors. */
interface RestoredChunks {
  readonly generation: number
  readonly chunks: readonly DeletedChunk[]
  readonly vectors: readonly Float32Array[]
}

/**
 * Deleted documents, which can be restored until they expire. A caller sees only those that it could see before. No search, list
 * or count of documents includes them.
 *
 * @see docs/decisions/0058-trash.md
 */
export class Trash {
  readonly #parts: TrashParts
  readonly #retention: RecordRetention<DeletedDocumentRow>

  constructor(parts: TrashParts) {
    this.#parts = parts
    const { retentionHours, documentsMax } = parts.trash
    this.#retention = new RecordRetention(parts, {
      table: tables.deletedDocuments,
      retentionDays: retentionHours / 24,
      limits: () => limitsByWorkspace(parts, tables.deletedDocuments, documentsMax),
      onDelete: async deleted => {
        for (const row of deleted) await this.#deleteVersions(row)
        return deleted.map(chunksDeletion)
      },
      failureWarning: 'expired documents in the trash could not be deleted',
    })
  }

  /** Starts to delete expired documents. */
  start(): void {
    this.#retention.start()
  }

  close(): Promise<void> {
    return this.#retention.close()
  }

  /**
   * Lists the deleted documents that the caller may see, in order of deletion.
   *
   * @throws knowledge_base_not_found, policy_principal_required
   */
  async list(
    { workspaceId, knowledgeBaseId }: BaseKey,
    query: PageQuery,
    caller: ContentCaller,
  ): Promise<RowPage<TrashEntry>> {
    const base = await this.#parts.bases.get(workspaceId, knowledgeBaseId)
    const visibility = (await caller.rowAccess(workspaceId)).visibility(base, { action: 'list' })
    const tags = documentTags(knowledgeBaseId, visibility)
    const list = { index: 'byKnowledgeBase', prefix: [workspaceId, knowledgeBaseId], tags }
    const isVisible = documentMatcher(visibility)
    const accepts = (row: DeletedDocumentRow): row is DeletedDocumentRow =>
      isVisible(row) && !this.#isExpired(row)
    const page = await this.#parts.pager.filteredPage(tables.deletedDocuments, list, query, accepts)
    return { ...page, items: page.items.map(row => this.#toEntry(row)) }
  }

  /**
   * Restores a document with its ID, its visibility and its chunks.
   *
   * @throws document_not_found, knowledge_base_not_found, policy_denied
   * @throws restore_conflict  another document has its text or its file name
   * @throws conflict          another document has its ID, or it changed during every attempt
   * @throws embedding_unavailable, embedding_dimension_mismatch  the model of the knowledge base has changed, and vectors
   *                           could not be computed again
   */
  async restore(entryKey: EntryKey, caller: RestoringCaller): Promise<Document> {
    const { workspaceId, knowledgeBaseId } = entryKey
    const { bases, rows, clock } = this.#parts
    let prepared: RestoredChunks | undefined
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      const context = await bases.openContext(workspaceId, knowledgeBaseId)
      const access = await caller.rowAccess(workspaceId)
      requireImported(context.base)
      const change = access.openChange(context.base, { action: 'ingest' })
      const entry = await this.#requireChangeable(entryKey, change)
      // The next version of the file would get its visibility.
      if (entry.row.metadata[folderKey] !== undefined) authorizeOwner(entry.row, access, workspaceId, caller)
      const { visibility } = change
      const keys = await restoredKeys(rows, context, { document: entry.row, access, visibility })
      if ('existing' in keys) throw restoreConflict(entry.row, keys)
      if (!prepared) {
        prepared = await this.#prepare(context, entry.row, caller.signal).catch(undefinedIfSpaceChanged)
        if (!prepared) continue
        await this.#parts.whenWritable(context)
        // This can take seconds. Check the access again, so that a revocation in the meantime takes effect.
        await caller.reauthorize()
        if (access.isEnabled) continue
      }
      const document: DocumentRow = { ...toDocumentRow(entry.row), ...keys, updatedAt: timestamp(clock) }
      const entryRemoval = entryDeletion(entry)
      const writes: Write[] = [
        { op: 'require', table: tables.knowledgeBases, key: [workspaceId, knowledgeBaseId] },
        ...entryRemoval,
        { op: 'insert', table: tables.documents, row: document },
      ]
      const outcome = await context.store.write(chunkWrites(context, document, prepared), writes)
      if (outcome.ok) {
        await this.#parts.onRecordsChanged(context)
        return toDocument(document)
      }
      if (outcome.at === 0) await bases.get(workspaceId, knowledgeBaseId)
      if (outcome.reason === 'exists') throw documentIdTaken(document.documentId)
      if (outcome.at >= writes.length) prepared = undefined
    }
    throw concurrentChange()
  }

  /**
   * Restores documents one by one. Continues after a failure.
   *
   * @throws knowledge_base_not_found
   * @throws unauthorized, forbidden  the caller lost its access in the meantime; some documents may have been restored
   */
  async restoreEach(baseKey: BaseKey, entryIds: readonly string[], caller: RestoringCaller) {
    await this.#parts.bases.openContext(baseKey.workspaceId, baseKey.knowledgeBaseId)
    return this.#forEach(entryIds, caller, entryId => this.restore({ ...baseKey, entryId }, caller))
  }

  /**
   * Deletes entries of the trash permanently, one by one. Continues after a failure. Returns the IDs of the entries.
   *
   * @throws knowledge_base_not_found
   * @throws unauthorized, forbidden  the caller lost its access in the meantime; some entries may have been deleted
   */
  async deleteEach(baseKey: BaseKey, entryIds: readonly string[], caller: ChangingCaller) {
    await this.#parts.bases.get(baseKey.workspaceId, baseKey.knowledgeBaseId)
    return this.#forEach(entryIds, caller, async entryId => {
      await this.#delete({ ...baseKey, entryId }, caller)
      return entryId
    })
  }

  async #forEach<T>(
    entryIds: readonly string[],
    caller: ChangingCaller,
    change: (entryId: string) => Promise<T>,
  ) {
    const done: T[] = []
    const failed: { entryId: string; code: string; message: string }[] = []
    for (const entryId of new Set(entryIds)) {
      await caller.reauthorize()
      try {
        done.push(await change(entryId))
      } catch (error) {
        const isKnown = error instanceof WbError
        if (!isKnown) this.#parts.log.error({ entryId, error }, 'a change of the trash failed')
        const { code, message } = isKnown ? error : unexpectedFailure
        failed.push({ entryId, code, message })
      }
    }
    return { done, failed }
  }

  /**
   * @throws document_not_found, knowledge_base_not_found, policy_denied
   * @throws conflict  the entry changed during every attempt
   */
  async #delete(entryKey: EntryKey, caller: ContentCaller): Promise<void> {
    const { bases, rows } = this.#parts
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      const base = await bases.get(entryKey.workspaceId, entryKey.knowledgeBaseId)
      const access = await caller.rowAccess(entryKey.workspaceId)
      const entry = await this.#requireChangeable(entryKey, access.openChange(base, { action: 'delete' }))
      const outcome = await rows.atomic(entryDeletion(entry))
      if (outcome.ok) return this.#deleteVersions(entry.row)
    }
    throw concurrentChange()
  }

  /**
   * Returns an entry that the caller may change: one whose document it may see. For a caller who may not see all documents, the
   * error does not reveal whether an entry exists.
   */
  async #requireChangeable(
    { workspaceId, knowledgeBaseId, entryId }: EntryKey,
    change: UndecidedChange,
  ): Promise<Stored<DeletedDocumentRow>> {
    const { visibility } = change
    const tags = documentTags(knowledgeBaseId, visibility)
    const stored = await this.#parts.rows.get(tables.deletedDocuments, [workspaceId, entryId], tags)
    const isFound =
      stored !== undefined &&
      stored.row.knowledgeBaseId === knowledgeBaseId &&
      documentMatcher(visibility)(stored.row) &&
      !this.#isExpired(stored.row)
    if (!isFound && !visibility.filter)
      throw new WbError('document_not_found', `no deleted document has the entry ID '${entryId}'`, {
        hint: 'List the trash of the knowledge base. Deleted documents expire.',
      })
    change.authorize(isFound)
    return stored!
  }

  #expiryOf({ deletedAt }: DeletedDocumentRow): number {
    return Date.parse(deletedAt) + this.#parts.trash.retentionHours * hourMs
  }

  #isExpired(row: DeletedDocumentRow): boolean {
    return this.#expiryOf(row) <= this.#parts.clock.now()
  }

  #toEntry(row: DeletedDocumentRow): TrashEntry {
    const { entryId, deletionId, deletedAt } = row
    const expiresAt = new Date(this.#expiryOf(row)).toISOString()
    return { entryId, deletionId, deletedAt, expiresAt, document: toDocument(toDocumentRow(row)) }
  }

  /** Reads the chunks of a deleted document. Computes their vectors again if the model has changed, or if none were kept. */
  async #prepare(
    context: BaseContext,
    row: DeletedDocumentRow,
    signal: AbortSignal,
  ): Promise<RestoredChunks> {
    const chunks: DeletedChunk[] = []
    const list = { index: 'byEntry', prefix: [row.workspaceId, row.entryId], limit: chunkRowsPerRead }
    for (let after: [number] | undefined; ; ) {
      const slice = await this.#parts.rows.list(tables.deletedChunks, { ...list, after })
      chunks.push(...slice.flatMap(stored => stored.row.chunks))
      if (slice.length < chunkRowsPerRead) break
      after = [slice.at(-1)!.row.start]
    }
    const { generation, dimension } = context.collection
    const kept = chunks.flatMap(({ vector }) => (vector === null ? [] : [decodeVectorText(vector)]))
    const isCurrent = row.generation === generation && kept.every(vector => vector.length === dimension)
    if (isCurrent && kept.length === chunks.length) return { generation, chunks, vectors: kept }
    const title = titleOfPayload(row.metadata)
    const passages = chunks.map(({ context, text }) => ({
      title: embeddedTitle({ title, context }),
      text: text ?? '',
    }))
    return retryOnSpaceChange(async () => {
      const vectors: Float32Array[] = []
      const generations = new Set<number>()
      for (let start = 0; start < passages.length; start += passagesPerEmbedding) {
        const slice = passages.slice(start, start + passagesPerEmbedding)
        const embedded = await this.#parts.space.embed(context, slice, 'document', signal)
        generations.add(embedded.generation)
        vectors.push(...embedded.vectors)
      }
      const [used = generation] = generations
      return generations.size > 1 ? undefined : { generation: used, chunks, vectors }
    })
  }

  /**
   * Deletes the access versions of a document that cannot be restored any more. Its deletion must not fail with them, so a failure
   * is only logged. The versions that remain expire later.
   */
  async #deleteVersions(row: DeletedDocumentRow): Promise<void> {
    const { rows, log } = this.#parts
    const { workspaceId, knowledgeBaseId, documentId } = row
    const documentKey = { workspaceId, knowledgeBaseId, documentId }
    await deleteDocumentVersions(rows, documentKey).catch(error =>
      log.warn({ ...documentKey, error }, 'the access versions of a deleted document were not deleted'),
    )
  }
}

/** Returns the document as it was before its deletion. */
function toDocumentRow(row: DeletedDocumentRow): DocumentRow {
  const { entryId: _, deletionId: __, deletedAt: ___, generation: ____, ...document } = row
  return document
}

/** Returns the changes that store the chunks. They fail if a record has the ID of a chunk, or if the vectors are outdated. */
function chunkWrites(
  { key }: BaseContext,
  document: DocumentRow,
  { generation, chunks, vectors }: RestoredChunks,
): ContentWrite[] {
  const title = titleOfPayload(document.metadata)
  const records = chunks.map(
    ({ id, chunkIndex, context, text, payload }, at): ContentRecord => ({
      id,
      documentId: document.documentId,
      chunkIndex,
      title,
      context,
      text,
      payload: updateInheritedFields(payload, document),
      vector: vectors[at]!,
    }),
  )
  const absent = chunks.map(({ id }) => ({ id, documentId: null, exists: false, isVisible: true }))
  return [
    { op: 'requireOwners', ...key, owners: absent, visibility: fullVisibility() },
    { op: 'upsert', ...key, generation, records },
  ]
}

function restoreConflict(
  { documentId, sourceFilename }: DocumentRow,
  { existing, has }: { existing: DocumentRow; has: 'text' | 'name' },
): WbError {
  const name = sourceFilename ?? documentId
  const shared = has === 'text' ? 'the same text' : 'the same file name'
  return new WbError(
    'restore_conflict',
    `document '${name}' cannot be restored, because document '${existing.documentId}' has ${shared}`,
  )
}
