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

/** Number of chunks to rewrite in one transaction when metadata changes. */
const rewriteSlice = 256
/** Maximum number of attempts; each one but the last failed because of another change to the document. */
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

/** Documents of knowledge bases. */
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
   * @throws conflict  the id is taken
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
   * Changes a document. Applies new metadata and visibility to its chunks first. Starts again if the document
   * changed in the meantime, for example by its ingest job, so that the chunks match the document.
   *
   * @throws document_not_found, knowledge_base_not_found
   * @throws conflict  the document changed during every attempt
   */
  update(place: DocumentKey, patch: DocumentFields, caller: Caller): Promise<Document> {
    return this.parts.bases.unlessDeleted(place, () => this.applyUpdate(place, patch, caller))
  }

  private async applyUpdate(place: DocumentKey, patch: DocumentFields, caller: Caller): Promise<Document> {
    let isStamped = false
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      const { row: before, version } = await this.requireStored(place)
      const after: DocumentRow = {
        ...before,
        ...patch,
        ...(matchesIngestKeys(before, patch) ? {} : { ingestKey: null, nameKey: null }),
        updatedAt: timestamp(this.parts.clock),
      }
      if (isStamped || isStampChanged(before, after)) {
        isStamped = true
        await this.rewriteChunks(place, after, caller)
      }
      const outcome = await this.parts.rows.atomic([
        { op: 'replace', table: tables.documents, row: after, version },
      ])
      if (outcome.ok) return after
    }
    throw new WbError('conflict', 'the document keeps changing; nothing was written')
  }

  /** @throws document_not_found, knowledge_base_not_found */
  async delete(place: DocumentKey): Promise<void> {
    const context = await this.parts.bases.context(place.workspaceId, place.knowledgeBaseId)
    const outcome = await context.store.write(
      [{ op: 'deleteDocument', ...context.key, documentId: place.documentId }],
      [{ op: 'delete', table: tables.documents, key: keyOf(place) }],
    )
    if (!outcome.ok) throw documentNotFound(place.documentId)
  }

  /** Deletes documents one by one. Continues after a failure, and returns it. */
  async deleteEach(workspaceId: string, knowledgeBaseId: string, documentIds: readonly string[]) {
    await this.parts.bases.context(workspaceId, knowledgeBaseId)
    const deleted: string[] = []
    const failed: { documentId: string; code: string; message: string }[] = []
    for (const documentId of new Set(documentIds)) {
      try {
        await this.delete({ workspaceId, knowledgeBaseId, documentId })
        deleted.push(documentId)
      } catch (error) {
        const why = deletionFailure(error)
        if (why.code !== 'not_found')
          this.parts.log.error({ documentId, error }, 'a document was not deleted')
        failed.push({ documentId, ...why })
      }
    }
    return { deleted, failed }
  }

  /**
   * Returns chunks by index, nulls last.
   *
   * @throws document_not_found, invalid_cursor, list_records_not_supported
   */
  async chunks(
    place: DocumentKey,
    query: { limit: number; cursor?: string },
    caller: Pick<Caller, 'visibility'>,
  ): Promise<RowPage<Chunk>> {
    await this.get(place.workspaceId, place.knowledgeBaseId, place.documentId)
    const context = await this.parts.bases.context(place.workspaceId, place.knowledgeBaseId)
    const list = ['chunks', ...keyOf(place)].join('/')
    const after = query.cursor === undefined ? undefined : this.parts.cursors.open(list, query.cursor)
    const views = await this.parts.bases.unlessDeleted(place, () =>
      requireListing(context.store).ofDocument(context.key, {
        documentId: place.documentId,
        after: after && { chunkIndex: after[0] as number | null, id: after[1] as string },
        limit: query.limit + 1,
        visibility: caller.visibility,
      }),
    )
    const shown = views.slice(0, query.limit)
    const last = views.length > query.limit ? shown.at(-1) : undefined
    return {
      items: shown.map(toChunk),
      nextCursor: last ? this.parts.cursors.seal(list, [last.chunkIndex, last.id]) : null,
    }
  }

  /** @throws document_not_found, knowledge_base_not_found */
  private async requireStored(place: DocumentKey): Promise<Stored<DocumentRow>> {
    const stored = await this.parts.rows.get(tables.documents, keyOf(place))
    if (stored) return stored
    await this.parts.bases.get(place.workspaceId, place.knowledgeBaseId)
    throw documentNotFound(place.documentId)
  }

  /** Rewrites the payloads of a document's chunks, and their vectors if the runtime fits the space itself. */
  private async rewriteChunks(place: DocumentKey, document: DocumentRow, caller: Caller): Promise<void> {
    const context = await this.parts.bases.context(place.workspaceId, place.knowledgeBaseId)
    let cursor: { chunkIndex: number | null; id: string } | undefined
    for (;;) {
      const views = await requireListing(context.store).ofDocument(context.key, {
        documentId: place.documentId,
        after: cursor,
        limit: rewriteSlice,
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
    const isThere = { op: 'require' as const, table: tables.documents, key: keyOf(document) }
    await retryOnSpaceChange(async () => {
      const views = await context.store.read(context.key, numbers, { vectors: !context.fitted, visibility })
      const passages = views.map(view => ({ title, text: view.text ?? '' }))
      const { generation, vectors } = context.fitted
        ? await this.parts.space.embed(context, passages, 'document', signal)
        : { generation: context.collection.generation, vectors: views.map(view => view.vector!) }
      const records = views.map((view, at) => ({
        ...view,
        title,
        payload: updateInheritedFields(view.payload, document),
        vector: vectors[at]!,
      }))
      const change = { op: 'upsert' as const, ...context.key, generation, records }
      const outcome = await context.store.write([change], [isThere])
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

/** Returns false if a manual change of name, hash or status makes a document differ from the ingested one. */
function matchesIngestKeys(row: DocumentRow, patch: DocumentFields): boolean {
  const isSame = (field: 'sourceFilename' | 'contentHash') =>
    patch[field] === undefined || patch[field] === row[field]
  return isSame('sourceFilename') && isSame('contentHash') && patch.status !== 'failed'
}

function isStampChanged(before: DocumentRow, after: DocumentRow): boolean {
  return JSON.stringify(documentPayload(before)) !== JSON.stringify(documentPayload(after))
}

function keyOf(place: DocumentKey): string[] {
  return [place.workspaceId, place.knowledgeBaseId, place.documentId]
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
