import type { Caller } from '../access/caller.ts'
import { type Clock, timestamp } from '../base/clock.ts'
import { newId } from '../base/id.ts'
import type { Log } from '../base/log.ts'
import type { Chunk, Document, DocumentCreate, DocumentFields } from '../contract/documents.ts'
import { type ErrorCode, WbError } from '../contract/errors.ts'
import type { PageQuery } from '../contract/page.ts'
import type { RecordView } from '../storage/content.ts'
import type { Cursors, Pager, RowPage } from '../storage/cursor.ts'
import type { RowStore, Stored } from '../storage/rows.ts'
import { requireListing } from '../storage/store-features.ts'
import { type DocumentRow, tables } from '../storage/tables.ts'
import type { BaseContext, KnowledgeBases } from './knowledge-bases.ts'
import { documentPayload, titleOfPayload, toApiPayload, updateInheritedFields } from './payload.ts'
import { retryOnSpaceChange, type VectorSpace } from './vector-space.ts'

interface DocumentsParts {
  readonly rows: RowStore
  readonly pager: Pager
  readonly cursors: Cursors
  readonly clock: Clock
  readonly log: Log
  readonly bases: KnowledgeBases
  readonly space: VectorSpace
}

/** Number of chunks to rewrite per transaction when metadata or visibility changes. */
const chunksPerRewrite = 256
/** Maximum number of attempts. An update is retried if the document changed in the meantime. */
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

  /** @throws knowledge_base_not_found */
  async list(workspaceId: string, knowledgeBaseId: string, query: PageQuery): Promise<RowPage<DocumentRow>> {
    await this.parts.bases.get(workspaceId, knowledgeBaseId)
    const list = { index: 'byKnowledgeBase', prefix: [workspaceId, knowledgeBaseId] }
    return this.parts.pager.page(tables.documents, list, query)
  }

  /** Returns the number of documents in any state. */
  count(workspaceId: string, knowledgeBaseId: string): Promise<number> {
    return this.parts.rows.count(tables.documents, 'byKnowledgeBase', [workspaceId, knowledgeBaseId])
  }

  /**
   * Registers a document without content.
   *
   * @throws knowledge_base_not_found
   * @throws conflict  another document has the requested ID
   */
  async create(workspaceId: string, knowledgeBaseId: string, body: DocumentCreate): Promise<Document> {
    await this.parts.bases.get(workspaceId, knowledgeBaseId)
    const row: DocumentRow = {
      ...unsetFields,
      ...body,
      workspaceId,
      knowledgeBaseId,
      documentId: body.documentId ?? newId(),
      updatedAt: timestamp(this.parts.clock),
      ingestKey: null,
      nameKey: null,
    }
    const outcome = await this.parts.rows.atomic([
      { op: 'require', table: tables.knowledgeBases, key: [workspaceId, knowledgeBaseId] },
      { op: 'insert', table: tables.documents, row },
    ])
    if (outcome.ok) return row
    if (outcome.at === 0) await this.parts.bases.get(workspaceId, knowledgeBaseId)
    throw new WbError('conflict', `document with id '${row.documentId}' already exists`)
  }

  /** @throws document_not_found, knowledge_base_not_found */
  async get(workspaceId: string, knowledgeBaseId: string, documentId: string): Promise<DocumentRow> {
    return (await this.requireStored({ workspaceId, knowledgeBaseId, documentId })).row
  }

  /**
   * Changes a document. First applies new metadata and visibility to its chunks. To keep the chunks consistent with the
   * document, retries if the document changed in the meantime (for example, because its ingest job advanced).
   *
   * @throws document_not_found, knowledge_base_not_found
   * @throws conflict  the document changed during every attempt
   */
  update(documentKey: DocumentKey, patch: DocumentFields, caller: Caller): Promise<Document> {
    return this.parts.bases.withDeletionCheck(documentKey, () => this.applyUpdate(documentKey, patch, caller))
  }

  private async applyUpdate(
    documentKey: DocumentKey,
    patch: DocumentFields,
    caller: Caller,
  ): Promise<Document> {
    let mustRewriteChunks = false
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      const { row: before, version } = await this.requireStored(documentKey)
      const after: DocumentRow = {
        ...before,
        ...patch,
        ...(keepsIngestKeys(before, patch) ? {} : { ingestKey: null, nameKey: null }),
        updatedAt: timestamp(this.parts.clock),
      }
      // After a failed attempt, the chunks have its fields, even if the next attempt does not change them.
      if (mustRewriteChunks || haveInheritedFieldsChanged(before, after)) {
        mustRewriteChunks = true
        await this.rewriteChunks(documentKey, after, caller)
      }
      const outcome = await this.parts.rows.atomic([
        { op: 'replace', table: tables.documents, row: after, version },
      ])
      if (outcome.ok) return after
    }
    throw new WbError('conflict', 'other requests kept changing the document; retry the update')
  }

  /** @throws document_not_found, knowledge_base_not_found */
  async delete(documentKey: DocumentKey): Promise<void> {
    const context = await this.parts.bases.openContext(documentKey.workspaceId, documentKey.knowledgeBaseId)
    const outcome = await context.store.write(
      [{ op: 'deleteDocument', ...context.key, documentId: documentKey.documentId }],
      [{ op: 'delete', table: tables.documents, key: keyOf(documentKey) }],
    )
    if (!outcome.ok) throw documentNotFound(documentKey.documentId)
  }

  /** Deletes documents one by one. Continues after a failure. Returns the deleted IDs and the failures. */
  async deleteEach(workspaceId: string, knowledgeBaseId: string, documentIds: readonly string[]) {
    await this.parts.bases.openContext(workspaceId, knowledgeBaseId)
    const deleted: string[] = []
    const failed: { documentId: string; code: string; message: string }[] = []
    for (const documentId of new Set(documentIds)) {
      try {
        await this.delete({ workspaceId, knowledgeBaseId, documentId })
        deleted.push(documentId)
      } catch (error) {
        const failure = deletionFailure(error)
        if (failure.code !== 'not_found')
          this.parts.log.error({ documentId, error }, 'a document was not deleted')
        failed.push({ documentId, ...failure })
      }
    }
    return { deleted, failed }
  }

  /**
   * Returns a page of chunks, ordered by chunk index with nulls last.
   *
   * @throws document_not_found, invalid_cursor, list_records_not_supported
   */
  async chunks(
    documentKey: DocumentKey,
    query: { limit: number; cursor?: string },
    caller: Pick<Caller, 'visibility'>,
  ): Promise<RowPage<Chunk>> {
    await this.get(documentKey.workspaceId, documentKey.knowledgeBaseId, documentKey.documentId)
    const context = await this.parts.bases.openContext(documentKey.workspaceId, documentKey.knowledgeBaseId)
    const list = ['chunks', ...keyOf(documentKey)].join('/')
    const after = query.cursor === undefined ? undefined : this.parts.cursors.decode(list, query.cursor)
    const views = await this.parts.bases.withDeletionCheck(documentKey, () =>
      requireListing(context.store).listByDocument(context.key, {
        documentId: documentKey.documentId,
        after: after && { chunkIndex: after[0] as number | null, id: after[1] as string },
        limit: query.limit + 1,
        visibility: caller.visibility,
      }),
    )
    const pageViews = views.slice(0, query.limit)
    const last = views.length > query.limit ? pageViews.at(-1) : undefined
    return {
      items: pageViews.map(toChunk),
      nextCursor: last ? this.parts.cursors.encode(list, [last.chunkIndex, last.id]) : null,
    }
  }

  /** @throws document_not_found, knowledge_base_not_found */
  private async requireStored(documentKey: DocumentKey): Promise<Stored<DocumentRow>> {
    const stored = await this.parts.rows.get(tables.documents, keyOf(documentKey))
    if (stored) return stored
    await this.parts.bases.get(documentKey.workspaceId, documentKey.knowledgeBaseId)
    throw documentNotFound(documentKey.documentId)
  }

  /** Rewrites the payloads of a document's chunks, and their vectors if the runtime fits the space. */
  private async rewriteChunks(
    documentKey: DocumentKey,
    document: DocumentRow,
    caller: Caller,
  ): Promise<void> {
    const context = await this.parts.bases.openContext(documentKey.workspaceId, documentKey.knowledgeBaseId)
    let cursor: { chunkIndex: number | null; id: string } | undefined
    for (;;) {
      const views = await requireListing(context.store).listByDocument(context.key, {
        documentId: documentKey.documentId,
        after: cursor,
        limit: chunksPerRewrite,
        visibility: caller.visibility,
      })
      const last = views.at(-1)
      if (!last) return
      await this.rewritePayloads(context, views, document, caller)
      cursor = { chunkIndex: last.chunkIndex, id: last.id }
    }
  }

  private async rewritePayloads(
    context: BaseContext,
    listed: readonly RecordView[],
    document: DocumentRow,
    caller: Caller,
  ): Promise<void> {
    const { visibility, signal } = caller
    const numbers = listed.map(view => view.record)
    const title = titleOfPayload(document.metadata)
    const requireDocument = { op: 'require' as const, table: tables.documents, key: keyOf(document) }
    await retryOnSpaceChange(async () => {
      const views = await context.store.read(context.key, numbers, {
        vectors: !context.isFittedByRuntime,
        visibility,
      })
      const passages = views.map(view => ({ title, text: view.text ?? '' }))
      const { generation, vectors } = context.isFittedByRuntime
        ? await this.parts.space.embed(context, passages, 'document', signal)
        : { generation: context.collection.generation, vectors: views.map(view => view.vector!) }
      const records = views.map((view, index) => ({
        ...view,
        title,
        payload: updateInheritedFields(view.payload, document),
        vector: vectors[index]!,
      }))
      const change = { op: 'upsert' as const, ...context.key, generation, records }
      const outcome = await context.store.write([change], [requireDocument])
      if (!outcome.ok && outcome.at === 0) throw documentNotFound(document.documentId)
      return outcome.ok || undefined
    })
  }
}

export interface DocumentKey {
  readonly workspaceId: string
  readonly knowledgeBaseId: string
  readonly documentId: string
}

/**
 * Returns true if a changed document keeps its unique keys: it has the same file name and content hash, and is not marked
 * as failed.
 */
function keepsIngestKeys(row: DocumentRow, patch: DocumentFields): boolean {
  const isSame = (field: 'sourceFilename' | 'contentHash') =>
    patch[field] === undefined || patch[field] === row[field]
  return isSame('sourceFilename') && isSame('contentHash') && patch.status !== 'failed'
}

function haveInheritedFieldsChanged(before: DocumentRow, after: DocumentRow): boolean {
  return JSON.stringify(documentPayload(before)) !== JSON.stringify(documentPayload(after))
}

function keyOf(documentKey: DocumentKey): string[] {
  return [documentKey.workspaceId, documentKey.knowledgeBaseId, documentKey.documentId]
}

function toChunk(view: RecordView): Chunk {
  return { id: view.id, chunkIndex: view.chunkIndex, text: view.text, payload: toApiPayload(view) }
}

function documentNotFound(documentId: string): WbError {
  return new WbError('document_not_found', `document '${documentId}' not found`)
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
