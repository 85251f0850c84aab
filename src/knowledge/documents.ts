import type { Caller } from '../access/caller.ts'
import { type Clock, timestamp } from '../base/clock.ts'
import { newId } from '../base/id.ts'
import type { Log } from '../base/log.ts'
import type { Chunk, Document, DocumentCreate, DocumentFields } from '../contract/documents.ts'
import { type ErrorCode, WbError } from '../contract/errors.ts'
import type { PageQuery } from '../contract/page.ts'
import { changeRow } from '../storage/change.ts'
import type { RecordView } from '../storage/content.ts'
import type { Cursors, Page, Pager } from '../storage/cursor.ts'
import { listingOf } from '../storage/missing.ts'
import type { RowStore } from '../storage/rows.ts'
import { type DocumentRow, tables } from '../storage/tables.ts'
import type { BaseContext, KnowledgeBases } from './bases.ts'
import { documentPayload, shownPayload, stampedPayload, titleOf } from './payload.ts'
import { inOneSpace, type Space } from './space.ts'

interface Parts {
  readonly rows: RowStore
  readonly pager: Pager
  readonly cursors: Cursors
  readonly clock: Clock
  readonly log: Log
  readonly bases: KnowledgeBases
  readonly space: Space
}

/** Chunks that are rewritten in one transaction when metadata changes. */
const rewriteSlice = 256

const unset = {
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

/** Documents of knowledge bases. */
export class Documents {
  constructor(private readonly parts: Parts) {}

  /** @throws knowledge_base_not_found */
  async list(workspaceId: string, knowledgeBaseId: string, query: PageQuery): Promise<Page<DocumentRow>> {
    await this.parts.bases.get(workspaceId, knowledgeBaseId)
    const list = { index: 'byKnowledgeBase', prefix: [workspaceId, knowledgeBaseId] }
    return this.parts.pager.page(tables.documents, list, query)
  }

  /**
   * Register a document without content.
   *
   * @throws knowledge_base_not_found
   * @throws conflict  the id is taken
   */
  async create(workspaceId: string, knowledgeBaseId: string, body: DocumentCreate): Promise<Document> {
    await this.parts.bases.get(workspaceId, knowledgeBaseId)
    const row: DocumentRow = {
      ...unset,
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
    const stored = await this.parts.rows.get(tables.documents, [workspaceId, knowledgeBaseId, documentId])
    if (stored) return stored.row
    await this.parts.bases.get(workspaceId, knowledgeBaseId)
    throw documentNotFound(documentId)
  }

  /**
   * Change a document; changed metadata and visibility reach its chunks first, so that a failure leaves
   * the document saying what its chunks say.
   *
   * @throws document_not_found, knowledge_base_not_found
   */
  async update(key: DocumentKey, patch: DocumentFields, caller: Caller): Promise<Document> {
    const before = await this.get(key.workspaceId, key.knowledgeBaseId, key.documentId)
    const after = { ...before, ...patch }
    if (isStampChanged(before, after)) await this.restamp(key, before, after, caller)
    const now = timestamp(this.parts.clock)
    const changed = await changeRow(this.parts.rows, tables.documents, keyOf(key), row => ({
      ...row,
      ...patch,
      ...(keepsKeys(row, patch) ? {} : { ingestKey: null, nameKey: null }),
      updatedAt: now,
    }))
    if (!('row' in changed)) throw documentNotFound(key.documentId)
    return changed.row
  }

  /** @throws document_not_found, knowledge_base_not_found */
  async delete(key: DocumentKey): Promise<void> {
    const context = await this.parts.bases.context(key.workspaceId, key.knowledgeBaseId)
    const outcome = await context.store.write(
      [{ op: 'deleteDocument', ...context.key, documentId: key.documentId }],
      [{ op: 'delete', table: tables.documents, key: keyOf(key) }],
    )
    if (!outcome.ok) throw documentNotFound(key.documentId)
  }

  /** Delete documents one by one; a failure is told and the rest goes on. */
  async deleteEach(workspaceId: string, knowledgeBaseId: string, documentIds: readonly string[]) {
    await this.parts.bases.context(workspaceId, knowledgeBaseId)
    const deleted: string[] = []
    const failed: { documentId: string; code: string; message: string }[] = []
    for (const documentId of new Set(documentIds)) {
      try {
        await this.delete({ workspaceId, knowledgeBaseId, documentId })
        deleted.push(documentId)
      } catch (error) {
        const why = whyNotDeleted(error)
        if (why.code !== 'not_found')
          this.parts.log.error({ documentId, error }, 'a document was not deleted')
        failed.push({ documentId, ...why })
      }
    }
    return { deleted, failed }
  }

  /**
   * Chunks in order, nulls last.
   *
   * @throws document_not_found, invalid_cursor, list_records_not_supported
   */
  async chunks(
    key: DocumentKey,
    query: { limit: number; cursor?: string },
    caller: Caller,
  ): Promise<Page<Chunk>> {
    await this.get(key.workspaceId, key.knowledgeBaseId, key.documentId)
    const context = await this.parts.bases.context(key.workspaceId, key.knowledgeBaseId)
    const list = ['chunks', ...keyOf(key)].join('/')
    const after = query.cursor === undefined ? undefined : this.parts.cursors.open(list, query.cursor)
    const views = await listingOf(context.store).ofDocument(context.key, {
      documentId: key.documentId,
      after: after && { chunkIndex: after[0] as number | null, id: after[1] as string },
      limit: query.limit + 1,
      visibility: caller.visibility,
    })
    const shown = views.slice(0, query.limit)
    const last = views.length > query.limit ? shown.at(-1) : undefined
    return {
      items: shown.map(toChunk),
      nextCursor: last ? this.parts.cursors.seal(list, [last.chunkIndex, last.id]) : null,
    }
  }

  /** Rewrite the payloads of a document's chunks; their vectors follow a changed title where the runtime makes them. */
  private async restamp(
    key: DocumentKey,
    before: DocumentRow,
    after: DocumentRow,
    caller: Caller,
  ): Promise<void> {
    const context = await this.parts.bases.context(key.workspaceId, key.knowledgeBaseId)
    let cursor: { chunkIndex: number | null; id: string } | undefined
    for (;;) {
      const views = await listingOf(context.store).ofDocument(context.key, {
        documentId: key.documentId,
        after: cursor,
        limit: rewriteSlice,
        visibility: caller.visibility,
      })
      const last = views.at(-1)
      if (!last) return
      await this.rewrite(context, views, { before, after }, caller)
      cursor = { chunkIndex: last.chunkIndex, id: last.id }
    }
  }

  private async rewrite(
    context: BaseContext,
    listed: readonly RecordView[],
    document: { before: DocumentRow; after: DocumentRow },
    caller: Caller,
  ): Promise<void> {
    const { visibility, signal } = caller
    const numbers = listed.map(view => view.record)
    const title = titleOf(document.after.metadata)
    const isThere = { op: 'require' as const, table: tables.documents, key: keyOf(document.after) }
    await inOneSpace(async () => {
      const views = await context.store.read(context.key, numbers, { vectors: !context.fitted, visibility })
      const passages = views.map(view => ({ title, text: view.text ?? '' }))
      const { generation, vectors } = context.fitted
        ? await this.parts.space.embed(context, passages, 'document', signal)
        : { generation: context.collection.generation, vectors: views.map(view => view.vector!) }
      const records = views.map((view, at) => ({
        ...view,
        title,
        payload: stampedPayload(view.payload, document),
        vector: vectors[at]!,
      }))
      const change = { op: 'upsert' as const, ...context.key, generation, records }
      const outcome = await context.store.write([change], [isThere])
      if (!outcome.ok && outcome.at === 0) throw documentNotFound(document.after.documentId)
      return outcome.ok || undefined
    })
  }
}

export interface DocumentKey {
  readonly workspaceId: string
  readonly knowledgeBaseId: string
  readonly documentId: string
}

/** A document that is renamed, failed or given another hash by hand is no longer the one that ingest made. */
function keepsKeys(row: DocumentRow, patch: DocumentFields): boolean {
  const isSame = (field: 'sourceFilename' | 'contentHash') =>
    patch[field] === undefined || patch[field] === row[field]
  return isSame('sourceFilename') && isSame('contentHash') && patch.status !== 'failed'
}

function isStampChanged(before: DocumentRow, after: DocumentRow): boolean {
  return JSON.stringify(documentPayload(before)) !== JSON.stringify(documentPayload(after))
}

function keyOf(key: DocumentKey): string[] {
  return [key.workspaceId, key.knowledgeBaseId, key.documentId]
}

function toChunk(view: RecordView): Chunk {
  return { id: view.id, chunkIndex: view.chunkIndex, text: view.text, payload: shownPayload(view) }
}

function documentNotFound(documentId: string): WbError {
  return new WbError('document_not_found', `document '${documentId}' not found`)
}

/** How a bulk deletion calls what it met. @see contract 6.2 */
const deletionCodes: Partial<Record<ErrorCode, string>> = {
  document_not_found: 'not_found',
  policy_denied: 'policy_denied',
}

function whyNotDeleted(error: unknown): { code: string; message: string } {
  if (!(error instanceof WbError))
    return { code: 'delete_failed', message: 'the document could not be deleted' }
  return { code: deletionCodes[error.code] ?? 'delete_failed', message: error.message }
}
