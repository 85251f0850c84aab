import type { Caller } from '../access/caller.ts'
import { findVisibleDocument } from '../access/document-visibility.ts'
import { documentMatcher, policyPayload } from '../access/policy/document-fields.ts'
import { documentTags } from '../access/policy/document-tags.ts'
import type { AccessTarget, RowAccess } from '../access/row-access.ts'
import { deleteDocumentVersions } from '../access/versions/version-removal.ts'
import { documentVersions } from '../access/versions/version-write.ts'
import { type Clock, timestamp } from '../base/clock.ts'
import { newId } from '../base/id.ts'
import type { Log } from '../base/log.ts'
import {
  type Chunk,
  type Document,
  type DocumentCreate,
  type DocumentFields,
  type DocumentListQuery,
  fileHashKey,
  folderKey,
} from '../contract/documents.ts'
import { type ErrorCode, WbError } from '../contract/errors.ts'
import type { DocumentExplanation } from '../contract/ingest-report.ts'
import type { KnowledgeBase } from '../contract/knowledge.ts'
import { limits } from '../contract/limits.ts'
import type { CollectionKey, RecordView } from '../storage/content.ts'
import type { Cursors, Pager, RowPage, RowRange } from '../storage/cursor.ts'
import { totalRecordChars } from '../storage/record-length.ts'
import { type RowRevision, type RowStore, revisionOf, type Stored } from '../storage/rows.ts'
import { requireListing } from '../storage/store-features.ts'
import { type DocumentRow, tables } from '../storage/tables.ts'
import type { Visibility } from '../storage/visibility.ts'
import type { DocumentChanges } from './document-changes.ts'
import { type BaseKey, type DocumentKey, keyOf } from './document-key.ts'
import type { RefitAfter } from './fitting.ts'
import { concurrentChange, requireImported } from './guards.ts'
import { documentIdTaken, domainOf } from './ingest/accept-text.ts'
import type { BaseContext, KnowledgeBases } from './knowledge-bases.ts'
import { authorizeOwner, withOwner } from './ownership.ts'
import { toApiPayload } from './payload.ts'
import type { RecordRewriter } from './record-rewriter.ts'
import { entriesWithId, idReservation } from './trash/reserved-ids.ts'
import { trashWrites } from './trash/trash-writes.ts'

interface DocumentsParts {
  readonly rows: RowStore
  readonly pager: Pager
  readonly cursors: Cursors
  readonly clock: Clock
  readonly log: Log
  readonly bases: KnowledgeBases
  readonly rewriter: RecordRewriter
  readonly changes: DocumentChanges
  readonly learnableRows: (key: CollectionKey) => Promise<Visibility>
  readonly refitAfter: RefitAfter
  /** True if deleted documents can be restored. */
  readonly isTrashEnabled: boolean
  /** Called after records were stored or deleted. */
  readonly onRecordsChanged: (context: BaseContext) => Promise<void>
}

/** The part of a caller that decides what it may see. */
export type ContentCaller = Pick<Caller, 'rowAccess'>
type DeletingCaller = ContentCaller & Pick<Caller, 'reauthorize'>
/** The parts of a caller that decide what it may see, and to whom it may attribute documents. */
export type WritingCaller = Pick<Caller, 'rowAccess' | 'auth'>

export interface DeletionOptions {
  /** True to delete documents permanently; otherwise, they can be restored. */
  readonly permanently?: boolean
  /** ID shared by documents that were deleted together; by default, a new one. */
  readonly deletionId?: string | undefined
}

/** Maximum number of attempts. A change is retried if the same rows changed in the meantime. */
const attemptsMax = 20

const unsetFields = {
  sourceDocId: null,
  sourceFilename: null,
  fileType: null,
  fileSize: null,
  contentHash: null,
  chunkTotal: null,
  ingestedAt: null,
  status: 'pending',
  errorMessage: null,
  metadata: {},
  visibleTo: null,
  ownerPrincipalId: null,
} as const

/** Reads and changes the documents of knowledge bases. */
export class Documents {
  constructor(private readonly parts: DocumentsParts) {}

  /**
   * Lists the documents that the caller may see, oldest first. With `own`, lists only those among which the texts and file names of
   * the caller are unique.
   *
   * @throws knowledge_base_not_found, policy_principal_required
   */
  async list(
    { workspaceId, knowledgeBaseId }: BaseKey,
    { own, ...query }: DocumentListQuery,
    caller: ContentCaller,
  ): Promise<RowPage<DocumentRow>> {
    const { base, access } = await this.accessTo({ workspaceId, knowledgeBaseId }, caller)
    const visibility = access.visibility(base, { action: 'list' })
    const list = documentsIn({ workspaceId, knowledgeBaseId }, visibility)
    const domain = own === 'true' ? domainOf(access, access.ownerId) : undefined
    if (!visibility.filter && domain === undefined)
      return this.parts.pager.page(tables.documents, list, query)
    const isVisible = documentMatcher(visibility)
    const accepts = (row: DocumentRow): row is DocumentRow =>
      isVisible(row) && (domain === undefined || row.ownerPrincipalId === domain)
    return this.parts.pager.filteredPage(tables.documents, list, query, accepts)
  }

  /**
   * Returns the number of documents in any state that the caller may see.
   *
   * @throws knowledge_base_not_found, policy_principal_required
   */
  async count({ workspaceId, knowledgeBaseId }: BaseKey, caller: ContentCaller): Promise<number> {
    const visibility = await this.visibilityIn({ workspaceId, knowledgeBaseId }, caller)
    const list = documentsIn({ workspaceId, knowledgeBaseId }, visibility)
    if (!visibility.filter) return this.parts.rows.count(tables.documents, list.index, list.prefix)
    const isVisible = documentMatcher(visibility)
    let count = 0
    for await (const slice of this.parts.pager.slices(tables.documents, list))
      count += slice.filter(({ row }) => isVisible(row)).length
    return count
  }

  /**
   * Registers a document without content.
   *
   * @throws knowledge_base_not_found
   * @throws forbidden  the owner is another principal, and the caller lacks `manage:access`
   * @throws conflict  another document has the requested ID, or a document in the trash that the caller may not see
   */
  async create(
    { workspaceId, knowledgeBaseId }: BaseKey,
    body: DocumentCreate,
    caller: WritingCaller,
  ): Promise<Document> {
    const base = await this.parts.bases.get(workspaceId, knowledgeBaseId)
    const access = await caller.rowAccess(workspaceId)
    authorizeOwner(body, access, workspaceId, caller)
    const now = timestamp(this.parts.clock)
    const row: DocumentRow = {
      ...unsetFields,
      ...withOwner(body, access),
      ...(access.isEnabled && { isVisibilityDecided: true }),
      workspaceId,
      knowledgeBaseId,
      documentId: body.documentId ?? newId(),
      createdAt: now,
      updatedAt: now,
      ingestKey: null,
      nameKey: null,
    }
    requireImported(base)
    const change = access.openChange(base, { action: 'ingest', resourceId: row.documentId })
    change.authorize(true)
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      const entries = await entriesWithId(this.parts.rows, row, change.visibility)
      if (!entries) throw documentIdTaken(row.documentId)
      const outcome = await this.parts.rows.atomic([
        { op: 'require', table: tables.knowledgeBases, key: [workspaceId, knowledgeBaseId] },
        ...idReservation(row, entries),
        { op: 'insert', table: tables.documents, row },
      ])
      if (outcome.ok) return row
      if (outcome.at === 0) await this.parts.bases.get(workspaceId, knowledgeBaseId)
      if (outcome.reason === 'exists') throw documentIdTaken(row.documentId)
    }
    throw concurrentChange()
  }

  /** @throws document_not_found, knowledge_base_not_found, policy_principal_required */
  async get(documentKey: DocumentKey, caller: ContentCaller): Promise<DocumentRow> {
    return (await this.requireVisible(documentKey, caller)).row
  }

  /**
   * Returns the report of the last ingest of a document, and the job that is ingesting it.
   *
   * @throws document_not_found, knowledge_base_not_found, policy_principal_required
   */
  async explain(documentKey: DocumentKey, caller: ContentCaller): Promise<DocumentExplanation> {
    const { documentId, status, ingestReport, jobId } = await this.get(documentKey, caller)
    const job = jobId ? await this.parts.rows.get(tables.jobs, [documentKey.workspaceId, jobId]) : undefined
    return { documentId, status, report: ingestReport ?? null, job: job?.row ?? null }
  }

  /** Returns true if a document exists, even if it is hidden. Call it only for a caller who may manage access. */
  async exists(documentKey: DocumentKey): Promise<boolean> {
    return (await this.parts.rows.get(tables.documents, keyOf(documentKey))) !== undefined
  }

  /**
   * Returns the document of a hit; undefined if the caller may no longer see it, or if it is in another knowledge base. In the
   * policy audit, this is a part of the search, so that a search is one decision and not one per hit.
   *
   * @throws knowledge_base_not_found, policy_principal_required
   */
  async findForHit(documentKey: DocumentKey, caller: ContentCaller): Promise<DocumentRow | undefined> {
    const { base, access } = await this.accessTo(documentKey, caller)
    let stored: Stored<DocumentRow> | undefined
    await access.canRead(base, { action: 'search' }, async visibility => {
      stored = await findVisibleDocument(this.parts.rows, documentKey, visibility)
      return stored !== undefined
    })
    return stored?.row
  }

  /**
   * Changes a document, and applies its new metadata and visibility to its chunks in the same transaction. Retries if the
   * document changed in the meantime (for example, because its ingest job advanced).
   *
   * @throws document_not_found, knowledge_base_not_found, policy_denied
   * @throws forbidden  the owner is or becomes another principal, the change concerns the owner, the file name or the synced folder,
   *                    and the caller lacks `manage:access`
   * @throws conflict  the document changed during every attempt
   */
  update(documentKey: DocumentKey, patch: DocumentFields, caller: Caller): Promise<Document> {
    const { bases, changes } = this.parts
    return bases.withDeletionCheck(documentKey, async () => {
      const updated = await changes.run(documentKey, () => this.applyUpdate(documentKey, patch, caller))
      if (updated) return updated
      throw new WbError('conflict', 'other requests kept changing the document; retry the update')
    })
  }

  /** Returns undefined if the document changed in the meantime. */
  private async applyUpdate(
    documentKey: DocumentKey,
    patch: DocumentFields,
    caller: Caller,
  ): Promise<Document | undefined> {
    const stored = await this.requireChangeable(documentKey, 'update', caller)
    const { row: before } = stored
    if (changesOwnership(before, patch)) {
      const access = await caller.rowAccess(before.workspaceId)
      for (const document of [before, { ...before, ...patch }])
        authorizeOwner(document, access, before.workspaceId, caller)
    }
    const after: DocumentRow = {
      ...before,
      ...patch,
      ...(patch.visibleTo !== undefined && { isVisibilityDecided: true }),
      ...(keepsIngestKeys(before, patch) ? {} : { ingestKey: null, nameKey: null }),
      updatedAt: timestamp(this.parts.clock),
    }
    return (await this.applyChange(stored, after, caller)) ? after : undefined
  }

  /**
   * Stores a changed document and its chunks. Returns false if it changed or was deleted in the meantime. Throws the errors
   * of {@link requireChangeable}.
   */
  private async applyChange(
    before: Stored<DocumentRow>,
    after: DocumentRow,
    caller: Caller,
  ): Promise<boolean> {
    if (!haveInheritedFieldsChanged(before.row, after)) return this.replace(after, before)
    // Embedding the chunks can take seconds. A revocation in the meantime must take effect.
    const authorize = async () => {
      await caller.reauthorize()
      await this.requireChangeable(before.row, 'update', caller)
    }
    const versions = documentVersions(before.row, after, after.updatedAt)
    const write = () =>
      this.parts.rewriter.replaceDocument({ before, after, authorize, versions }, caller.signal)
    const context = await this.parts.bases.openContext(after.workspaceId, after.knowledgeBaseId)
    const isLearnable = documentMatcher(await this.parts.learnableRows(context.key))
    const hidesLearned = isLearnable(before.row) && !isLearnable(after)
    const isChanged = await (hidesLearned ? this.parts.refitAfter([context.key], write) : write())
    if (isChanged) await this.parts.onRecordsChanged(context)
    return isChanged
  }

  /** Replaces a document. Returns false if it changed or was deleted in the meantime. */
  private async replace(row: DocumentRow, revision: RowRevision): Promise<boolean> {
    const outcome = await this.parts.rows.atomic([
      { op: 'replace', table: tables.documents, row, ...revisionOf(revision) },
    ])
    return outcome.ok
  }

  /**
   * Deletes a document. It can be restored, unless its ingest has not finished, or its store cannot list its chunks.
   *
   * @throws document_not_found, knowledge_base_not_found, policy_denied
   * @throws conflict  the document changed during every attempt
   */
  async delete(
    documentKey: DocumentKey,
    caller: DeletingCaller,
    { permanently = false, deletionId = newId() }: DeletionOptions = {},
  ): Promise<void> {
    const context = await this.parts.bases.openContext(documentKey.workspaceId, documentKey.knowledgeBaseId)
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      const stored = await this.requireChangeable(documentKey, 'delete', caller)
      const canRestore = context.store.listing !== undefined && !stored.row.jobId
      const isKept = this.parts.isTrashEnabled && canRestore && !permanently
      const deletedAt = timestamp(this.parts.clock)
      const copy = isKept
        ? await this.parts.bases.withDeletionCheck(documentKey, () =>
            trashWrites(context, stored.row, { deletionId, deletedAt }),
          )
        : { rows: [], changes: [] }
      if (isKept) {
        // Copying a large document can take seconds. A revocation in the meantime must take effect.
        await caller.reauthorize()
        await this.requireChangeable(documentKey, 'delete', caller)
      }
      const outcome = await context.store.write(
        [...copy.changes, { op: 'deleteDocument', ...context.key, documentId: documentKey.documentId }],
        [
          { op: 'delete', table: tables.documents, key: keyOf(documentKey), ...revisionOf(stored) },
          ...copy.rows,
        ],
      )
      if (outcome.ok) {
        if (!isKept) await this.deleteVersions(documentKey)
        return this.parts.onRecordsChanged(context)
      }
    }
    throw new WbError('conflict', 'the document keeps changing; it was not deleted')
  }

  /** The document has been deleted, so a failure is only logged. The versions that remain expire later. */
  private async deleteVersions(documentKey: DocumentKey): Promise<void> {
    const { rows, log } = this.parts
    await deleteDocumentVersions(rows, documentKey).catch(error =>
      log.warn({ ...documentKey, error }, 'the access versions of a deleted document were not deleted'),
    )
  }

  /**
   * Deletes documents one by one. Continues after a failure. Returns the deleted IDs and the failures.
   *
   * @throws knowledge_base_not_found
   * @throws unauthorized, forbidden  the caller lost its access in the meantime; some documents may have been deleted
   */
  async deleteEach(
    { workspaceId, knowledgeBaseId }: BaseKey,
    documentIds: readonly string[],
    caller: DeletingCaller,
    { permanently, deletionId = newId() }: DeletionOptions = {},
  ) {
    await this.parts.bases.openContext(workspaceId, knowledgeBaseId)
    const deleted: string[] = []
    const failed: { documentId: string; code: string; message: string }[] = []
    for (const documentId of new Set(documentIds)) {
      await caller.reauthorize()
      try {
        const documentKey = { workspaceId, knowledgeBaseId, documentId }
        await this.delete(documentKey, caller, { permanently, deletionId })
        deleted.push(documentId)
      } catch (error) {
        const failure = deletionFailure(error)
        if (failure.code === 'delete_failed')
          this.parts.log.error({ documentId, error }, 'a document was not deleted')
        failed.push({ documentId, ...failure })
      }
    }
    return { deleted, failed }
  }

  /**
   * Returns a page of chunks, ordered by chunk index with nulls last. A page ends early if it gets too long.
   *
   * @throws document_not_found, invalid_cursor, list_records_not_supported, policy_principal_required
   */
  async chunks(
    documentKey: DocumentKey,
    query: { limit: number; cursor?: string },
    caller: ContentCaller,
  ): Promise<RowPage<Chunk>> {
    const { visibility } = await this.requireVisible(documentKey, caller)
    const context = await this.parts.bases.openContext(documentKey.workspaceId, documentKey.knowledgeBaseId)
    const list = ['chunks', ...keyOf(documentKey)].join('/')
    const after = query.cursor === undefined ? undefined : this.parts.cursors.decode(list, query.cursor)
    const readAfter = (position: ChunkPosition | undefined, limit: number) =>
      this.parts.bases.withDeletionCheck(documentKey, () =>
        requireListing(context.store).listByDocument(context.key, {
          documentId: documentKey.documentId,
          after: position,
          limit,
          charsMax: limits.answerChars,
          visibility,
        }),
      )
    const start = after && { chunkIndex: after[0] as number | null, id: after[1] as string }
    const views = await readAfter(start, query.limit + 1)
    const pageViews = views.slice(0, query.limit)
    const isCut = pageViews.length === views.length && totalRecordChars(views) > limits.answerChars
    const hasMore = isCut ? (await readAfter(views.at(-1), 1)).length > 0 : views.length > pageViews.length
    const last = hasMore ? pageViews.at(-1) : undefined
    return {
      items: pageViews.map(toChunk),
      nextCursor: last ? this.parts.cursors.encode(list, [last.chunkIndex, last.id]) : null,
    }
  }

  /**
   * Returns a document that a caller may see. A missing document is recorded like a hidden one, because the caller can read
   * its own decisions.
   *
   * @throws document_not_found, knowledge_base_not_found, policy_principal_required
   */
  private async requireVisible(
    documentKey: DocumentKey,
    caller: ContentCaller,
  ): Promise<{ row: DocumentRow; visibility: Visibility }> {
    const { base, access } = await this.accessTo(documentKey, caller)
    const use = { action: 'get', resourceId: documentKey.documentId } as const
    const visibility = access.visibility(base, use)
    const stored = await findVisibleDocument(this.parts.rows, documentKey, visibility)
    if (stored) return { row: stored.row, visibility }
    access.recordDenial(base, use)
    throw await this.notFound(documentKey)
  }

  /** Returns the error for a document that does not exist, or whose knowledge base was deleted in the meantime. */
  private async notFound({ workspaceId, knowledgeBaseId, documentId }: DocumentKey): Promise<WbError> {
    await this.parts.bases.get(workspaceId, knowledgeBaseId)
    return new WbError('document_not_found', `document '${documentId}' not found`)
  }

  /** Returns the documents of a knowledge base that a caller may see. */
  private async visibilityIn(baseKey: BaseKey, caller: ContentCaller): Promise<Visibility> {
    const { base, access } = await this.accessTo(baseKey, caller)
    return access.visibility(base, { action: 'list' })
  }

  private async accessTo(
    { workspaceId, knowledgeBaseId }: BaseKey,
    caller: ContentCaller,
  ): Promise<{ base: KnowledgeBase; access: RowAccess }> {
    const base = await this.parts.bases.get(workspaceId, knowledgeBaseId)
    return { base, access: await caller.rowAccess(workspaceId) }
  }

  /**
   * Returns a document that a caller may change: one that it may see. For a caller who may not see all documents, the
   * error does not reveal whether a document exists.
   *
   * @throws document_not_found, knowledge_base_not_found, policy_denied
   */
  private async requireChangeable(
    documentKey: DocumentKey,
    action: AccessTarget['action'],
    caller: ContentCaller,
  ): Promise<Stored<DocumentRow>> {
    const { base, access } = await this.accessTo(documentKey, caller)
    requireImported(base)
    const change = access.openChange(base, { action, resourceId: documentKey.documentId })
    const stored = await findVisibleDocument(this.parts.rows, documentKey, change.visibility)
    if (!stored && !change.visibility.filter) throw await this.notFound(documentKey)
    change.authorize(stored !== undefined)
    return stored!
  }
}

/** Returns the list of the documents of a knowledge base that can be visible. Check them, too: see {@link documentTags}. */
export function documentsIn({ workspaceId, knowledgeBaseId }: BaseKey, visibility: Visibility): RowRange {
  const tags = documentTags(knowledgeBaseId, visibility)
  return { index: 'byKnowledgeBase', prefix: [workspaceId, knowledgeBaseId], tags }
}

/**
 * Returns true if a changed document keeps its unique keys: it has the same file name, content hash and owner, and is not
 * marked as failed.
 */
function keepsIngestKeys(row: DocumentRow, patch: DocumentFields): boolean {
  const isSame = (field: 'sourceFilename' | 'contentHash' | 'ownerPrincipalId') =>
    patch[field] === undefined || patch[field] === row[field]
  const hasSameKeys = isSame('sourceFilename') && isSame('contentHash') && isSame('ownerPrincipalId')
  return hasSameKeys && patch.status !== 'failed'
}

/**
 * Returns true if a change decides which file of which owner a document belongs to. A sync takes over the visibility of the document
 * for the next version of this file, or for a renamed file with the same hash, so only the owner may decide it.
 */
function changesOwnership(before: DocumentRow, patch: DocumentFields): boolean {
  const after = { ...before, ...patch }
  return (
    after.ownerPrincipalId !== before.ownerPrincipalId ||
    after.sourceFilename !== before.sourceFilename ||
    after.contentHash !== before.contentHash ||
    after.metadata[folderKey] !== before.metadata[folderKey] ||
    after.metadata[fileHashKey] !== before.metadata[fileHashKey]
  )
}

function haveInheritedFieldsChanged(before: DocumentRow, after: DocumentRow): boolean {
  return JSON.stringify(policyPayload(before)) !== JSON.stringify(policyPayload(after))
}

/** Position of a chunk in the order of the chunks of a document. */
type ChunkPosition = Pick<RecordView, 'chunkIndex' | 'id'>

function toChunk(view: RecordView): Chunk {
  return { id: view.id, chunkIndex: view.chunkIndex, text: view.text, payload: toApiPayload(view) }
}

/**
 * Failure codes of a bulk deletion.
 *
 * @see docs/http.md#documents-and-chunks
 */
const deletionCodes: Partial<Record<ErrorCode, string>> = {
  document_not_found: 'not_found',
  knowledge_base_not_found: 'not_found',
  workspace_not_found: 'not_found',
  policy_denied: 'policy_denied',
}

function deletionFailure(error: unknown): { code: string; message: string } {
  if (!(error instanceof WbError))
    return { code: 'delete_failed', message: 'the document could not be deleted' }
  return { code: deletionCodes[error.code] ?? 'delete_failed', message: error.message }
}
