import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { authorize } from '../../access/authorize.ts'
import type { Caller } from '../../access/caller.ts'
import { documentMatcher } from '../../access/policy/document-fields.ts'
import { documentTags } from '../../access/policy/document-tags.ts'
import { fullVisibility } from '../../access/row-access.ts'
import { chainHash, chainStart } from '../../base/chain-hash.ts'
import { type Clock, timestamp } from '../../base/clock.ts'
import { needs } from '../../contract/access.ts'
import {
  type ArchivedChunk,
  type ArchivedDocument,
  type ArchivedRecord,
  type ArchiveHeader,
  type ArchiveLine,
  archiveFormat,
  archiveVersion,
  isChunkField,
} from '../../contract/archives.ts'
import { WbError } from '../../contract/errors.ts'
import { ownerPayloadKey } from '../../contract/fields.ts'
import { limits } from '../../contract/limits.ts'
import type { ChunkingService, RerankingService } from '../../contract/services.ts'
import type { RecordView } from '../../storage/content.ts'
import type { Cursors, Pager } from '../../storage/cursor.ts'
import type { RowStore } from '../../storage/rows.ts'
import { requireListing } from '../../storage/store-features.ts'
import { type DocumentRow, tables } from '../../storage/tables.ts'
import type { Visibility } from '../../storage/visibility.ts'
import type { Services } from '../../workspaces/services.ts'
import { type BaseKey, keyOf } from '../document-key.ts'
import { visibleFolders } from '../folder-descriptions.ts'
import { requireImported } from '../guards.ts'
import type { BaseContext, KnowledgeBases } from '../knowledge-bases.ts'
import { contextOfPayload, folderOfRecord } from '../payload.ts'

/** Maximum number of documents and of records that are read at a time. */
const batchSize = 100
/** Maximum number of attempts to read a page without a change of its documents in the meantime. */
const attemptsMax = 5

interface ExporterParts {
  readonly rows: RowStore
  readonly pager: Pager
  readonly cursors: Cursors
  readonly clock: Clock
  readonly bases: KnowledgeBases
  readonly chunking: Services<ChunkingService>
}

/** A page of an exported file. */
export interface ExportPage {
  readonly lines: string[]
  /** True if the page does not end within a document. */
  readonly isComplete: boolean
  readonly nextCursor: string | null
}

/** The start of the next page, and the content of the pages before. */
interface ExportPosition {
  /** Ordinal of the last document that was read. The next one has a higher ordinal. */
  ordinal: number
  /** The document whose chunks continue, the time of its last change, and the index of its last chunk. */
  open?: { documentId: string; updatedAt: string; chunk: RecordView['chunkIndex'] } | undefined
  /** Number of the last record without a document; undefined while there are documents. */
  record?: number | undefined
  hash: string
  documents: number
  records: number
}

/** A document of a page, or the embedding service, changed while the page was read. */
class ChangedContent extends Error {}

/** Exports knowledge bases as lines of JSON, in pages that need no state between requests. */
export class Exporter {
  constructor(private readonly parts: ExporterParts) {}

  /**
   * Returns a page of the exported file of a knowledge base, with what the caller may see. All pages have the vectors of the same
   * embedding service.
   *
   * @throws knowledge_base_not_found, list_records_not_supported, policy_principal_required
   * @throws invalid_cursor  also if the embedding service has changed since the first page
   * @throws forbidden  everything was requested, and the caller lacks `manage:access`
   * @throws conflict   the knowledge base is being imported, or a document keeps changing
   */
  async page(
    baseKey: BaseKey,
    { cursor, all }: { cursor?: string | undefined; all: boolean },
    caller: Pick<Caller, 'auth' | 'rowAccess'>,
  ): Promise<ExportPage> {
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      try {
        return await this.parts.bases.withDeletionCheck(baseKey, () =>
          this.#read(baseKey, { cursor, all }, caller),
        )
      } catch (error) {
        if (!(error instanceof ChangedContent)) throw error
      }
    }
    throw new WbError('conflict', 'a document changed while it was exported; continue after an earlier page')
  }

  async #read(
    { workspaceId, knowledgeBaseId }: BaseKey,
    { cursor, all }: { cursor?: string | undefined; all: boolean },
    caller: Pick<Caller, 'auth' | 'rowAccess'>,
  ): Promise<ExportPage> {
    const context = await this.parts.bases.openContext(workspaceId, knowledgeBaseId)
    const { embeddingServiceId } = context.base
    requireImported(context.base)
    const access = await caller.rowAccess(workspaceId)
    if (all) authorize({ rule: needs('manage:access'), workspaceId }, caller)
    const visibility = all ? fullVisibility() : access.visibility(context.base, { action: 'list' })
    const list = `export/${workspaceId}/${knowledgeBaseId}/${all}/${embeddingServiceId}`
    const start = cursor === undefined ? undefined : this.#decode(list, cursor)
    const page = new PageWriter(start ?? { ordinal: 0, hash: chainStart, documents: 0, records: 0 })
    if (!start) page.add(await this.#header(context, visibility, access.isEnabled))
    if (page.position.record === undefined) await this.#addDocuments(context, visibility, page)
    if (page.position.record !== undefined) await this.#addRecords(context, visibility, page)
    const isEnd = page.isEnd
    if (isEnd) {
      const { documents, records, hash } = page.position
      page.add({ end: { documents, records, sha256: hash } } satisfies ArchiveLine)
    }
    const after = await this.parts.bases.get(workspaceId, knowledgeBaseId)
    if (after.embeddingServiceId !== embeddingServiceId) throw new ChangedContent()
    const nextCursor = isEnd ? null : this.#encode(list, page.position)
    return { lines: page.lines, isComplete: page.position.open === undefined, nextCursor }
  }

  async #header(
    { base, embedding }: BaseContext,
    visibility: Visibility,
    rowAccess: boolean,
  ): Promise<ArchiveHeader> {
    const { rows, pager, bases, chunking, clock } = this.parts
    const folders = await visibleFolders(pager, base, visibility)
    const chunker = await bases.boundService(chunking, base, base.chunkingServiceId)
    const stored =
      base.rerankingServiceId === null
        ? undefined
        : await rows.get(tables.rerankingServices, [base.workspaceId, base.rerankingServiceId])
    return {
      format: archiveFormat,
      version: archiveVersion,
      createdAt: timestamp(clock),
      name: base.name,
      description: base.description,
      status: base.status,
      language: base.language,
      lexical: base.lexical,
      ...(base.semantic !== undefined && { semantic: base.semantic }),
      ...(folders.length > 0 && { folders: [...folders] }),
      rowAccess,
      policyDsl: base.policyDsl,
      policyEnabled: base.policyEnabled,
      embedding: {
        name: embedding.name,
        provider: embedding.provider,
        modelName: embedding.modelName,
        embeddingDimension: embedding.embeddingDimension,
        distanceMetric: embedding.distanceMetric,
      },
      chunking: { name: chunker.name, engine: chunker.engine, strategy: chunker.strategy },
      reranking: stored ? describeReranking(stored.row) : null,
    }
  }

  async #addDocuments(context: BaseContext, visibility: Visibility, page: PageWriter): Promise<void> {
    const { workspaceId, knowledgeBaseId } = context.base
    const isVisible = documentMatcher(visibility)
    const tags = documentTags(knowledgeBaseId, visibility)
    const list = { index: 'byKnowledgeBase', prefix: [workspaceId, knowledgeBaseId], limit: batchSize }
    for (;;) {
      const batch = await this.parts.rows.list(tables.documents, {
        ...list,
        after: [page.position.ordinal],
        charsMax: limits.archivePageChars,
        ...(tags && { tags }),
      })
      for (const { row, ordinal } of batch) {
        if (isVisible(row) && isExportable(row)) await this.#addDocument(context, row, visibility, page)
        else this.#requireNotOpen(page)
        if (page.position.open) return
        page.position.ordinal = ordinal
        if (page.isFull) return
      }
      if (batch.length === 0) {
        this.#requireNotOpen(page)
        page.position.record = 0
        return
      }
      // The store reads synchronously.
      await yieldToEventLoop()
    }
  }

  /** Adds a document, or the rest of its chunks. Sets `open` if the page is full before the last chunk. */
  async #addDocument(
    context: BaseContext,
    row: DocumentRow,
    visibility: Visibility,
    page: PageWriter,
  ): Promise<void> {
    const { position } = page
    const { documentId, updatedAt } = row
    if (position.open && (position.open.documentId !== documentId || position.open.updatedAt !== updatedAt))
      throw new ChangedContent()
    if (!position.open) {
      page.add({ document: toArchivedDocument(row) } satisfies ArchiveLine)
      position.documents++
    }
    let last: { chunkIndex: number | null; id: string } | undefined
    if (position.open) {
      const { chunk } = position.open
      last = { chunkIndex: chunk, id: `${documentId}:${chunk}` }
    }
    for (;;) {
      if (page.isFull && last) {
        position.open = { documentId, updatedAt, chunk: last.chunkIndex }
        return
      }
      const views = await requireListing(context.store).listByDocument(context.key, {
        documentId,
        ...(last && { after: last }),
        limit: batchSize,
        charsMax: limits.archivePageChars,
        visibility,
      })
      if (views.length === 0) break
      for (const view of await withVectors(context, views, visibility)) {
        // The stored context can contain the earlier description of a folder that the caller may not see.
        const exported = visibility.filter ? { ...view, context: currentContext(context, view) } : view
        page.add({ chunk: toArchivedChunk(exported) } satisfies ArchiveLine)
        position.records++
      }
      last = views.at(-1)!
      await yieldToEventLoop()
    }
    position.open = undefined
    const current = await this.parts.rows.get(tables.documents, keyOf(row))
    if (current?.row.updatedAt !== updatedAt) throw new ChangedContent()
  }

  /** @throws ChangedContent  the document with which the page has to continue is no longer there */
  #requireNotOpen({ position }: PageWriter): void {
    if (position.open) throw new ChangedContent()
  }

  async #addRecords(context: BaseContext, visibility: Visibility, page: PageWriter): Promise<void> {
    const { position } = page
    while (!page.isFull) {
      const views = await requireListing(context.store).listDirect(context.key, {
        after: position.record!,
        limit: batchSize,
        visibility,
      })
      if (views.length === 0) {
        page.isEnd = true
        return
      }
      for (const view of await withVectors(context, views, visibility)) {
        page.add({ record: toArchivedRecord(view) } satisfies ArchiveLine)
        position.records++
        position.record = view.record
        if (page.isFull) return
      }
      await yieldToEventLoop()
    }
  }

  #encode(list: string, { ordinal, open, record, hash, documents, records }: ExportPosition): string {
    const opened = open ? [open.documentId, open.updatedAt, open.chunk] : [null, null, null]
    return this.parts.cursors.encode(list, [ordinal, ...opened, record ?? null, hash, documents, records])
  }

  /** @throws invalid_cursor */
  #decode(list: string, cursor: string): ExportPosition {
    const [ordinal, documentId, updatedAt, chunk, record, hash, documents, records] =
      this.parts.cursors.decode(list, cursor) as [
        number,
        string | null,
        string,
        number | null,
        number | null,
        string,
        number,
        number,
      ]
    return {
      ordinal,
      open: documentId === null ? undefined : { documentId, updatedAt, chunk },
      record: record ?? undefined,
      hash,
      documents,
      records,
    }
  }
}

/** Collects the lines of a page. */
class PageWriter {
  readonly lines: string[] = []
  readonly position: ExportPosition
  /** True after the last record. */
  isEnd = false
  #chars = 0

  constructor(start: ExportPosition) {
    this.position = { ...start }
  }

  get isFull(): boolean {
    return this.#chars >= limits.archivePageChars
  }

  add(value: object): void {
    const line = JSON.stringify(value)
    this.lines.push(line)
    this.#chars += line.length
    this.position.hash = chainHash(this.position.hash, line)
  }
}

/** Returns true unless the document is being ingested. */
function isExportable({ status, jobId }: DocumentRow): boolean {
  return (status === 'ready' || status === 'failed' || status === 'pending') && !jobId
}

/** Reads the vectors of records, unless the runtime fits them. Omits records that were deleted in the meantime. */
async function withVectors(
  { store, key, isFittedByRuntime, collection }: BaseContext,
  views: readonly RecordView[],
  visibility: Visibility,
): Promise<readonly RecordView[]> {
  if (isFittedByRuntime || collection.dimension === 0) return views
  const numbers = views.map(({ record }) => record)
  return store.read(key, numbers, { vectors: true, visibility })
}

function toArchivedDocument(row: DocumentRow): ArchivedDocument {
  return {
    documentId: row.documentId,
    sourceDocId: row.sourceDocId,
    sourceFilename: row.sourceFilename,
    fileType: row.fileType,
    fileSize: row.fileSize,
    contentHash: row.contentHash,
    chunkTotal: row.chunkTotal,
    ingestedAt: row.ingestedAt,
    status: row.status as ArchivedDocument['status'],
    errorMessage: row.errorMessage,
    metadata: row.metadata,
    visibleTo: row.visibleTo,
    ownerPrincipalId: row.ownerPrincipalId,
    isIngested: row.ingestKey !== null,
    ...(row.chunking && { chunking: row.chunking }),
  }
}

function currentContext({ base }: BaseContext, view: RecordView): string | null {
  return contextOfPayload(view.payload, folderOfRecord(base, view)?.description)
}

function toArchivedChunk({ chunkIndex, context, text, payload, vector }: RecordView): ArchivedChunk {
  const fields = Object.entries(payload).filter(([key]) => isChunkField(key))
  return {
    index: chunkIndex!,
    ...(context !== null && { context }),
    text,
    fields: Object.fromEntries(fields) as ArchivedChunk['fields'],
    ...(vector && { vector: encodeVector(vector) }),
  }
}

function toArchivedRecord({ id, text, payload, vector }: RecordView): ArchivedRecord {
  const { visible_to: readers, [ownerPayloadKey]: owner, ...fields } = payload
  return {
    id,
    text,
    payload: fields,
    visibleTo: (readers as string[] | undefined) ?? null,
    ownerPrincipalId: (owner as string | undefined) ?? null,
    ...(vector && { vector: encodeVector(vector) }),
  }
}

function encodeVector(vector: Float32Array): string {
  return Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength).toString('base64')
}

function describeReranking({ name, provider, modelName }: RerankingService) {
  return { name, provider, modelName }
}
