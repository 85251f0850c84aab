import type { Caller } from '../access/caller.ts'
import { type Clock, timestamp } from '../base/clock.ts'
import { sha256 } from '../base/id.ts'
import { presentableMessage } from '../base/redact.ts'
import type { OperationHost } from '../base/threads.ts'
import type { Document, Ingest } from '../contract/documents.ts'
import { WbError } from '../contract/errors.ts'
import type { Job } from '../contract/jobs.ts'
import type { ChunkingService } from '../contract/services.ts'
import { newJob } from '../jobs/job-changes.ts'
import type { RowStore, WriteOutcome } from '../storage/rows.ts'
import { type DocumentRow, tables } from '../storage/tables.ts'
import type { Services } from '../workspaces/services.ts'
import { collectionGone, concurrentChange } from './guards.ts'
import {
  type AcceptedIngest,
  acceptText,
  documentIdTaken,
  type ExistingDocument,
} from './ingest/accept-text.ts'
import {
  chunkUpsert,
  createDocument,
  documentDeletion,
  type EmbeddedChunks,
} from './ingest/document-writes.ts'
import type { BaseContext, KnowledgeBases } from './knowledge-bases.ts'
import type { PassageOperations } from './passage-operations.ts'
import { titleOfPayload } from './payload.ts'
import type { VectorSpace } from './vector-space.ts'

/** Maximum length of texts that are hashed on this thread, which takes under a millisecond. */
const inlineHashCharsMax = 250_000
/**
 * Maximum number of attempts. Each one but the last fails because of another write; so many are not expected.
 */
const attemptsMax = 100

export type IngestResult =
  | { readonly kind: 'ingested'; readonly document: Document; readonly chunks: number }
  | ExistingDocument

export type EnqueueResult =
  | { readonly kind: 'enqueued'; readonly document: Document; readonly job: Job }
  | ExistingDocument

export interface IngestParts {
  readonly rows: RowStore
  readonly clock: Clock
  readonly bases: KnowledgeBases
  readonly chunking: Services<ChunkingService>
  readonly space: VectorSpace
  /** Chunks and embeds ingested texts. */
  readonly index: OperationHost<PassageOperations>
  /** Called after each document, to start a fit when it is due. */
  readonly onIngested: (context: BaseContext) => void
}

/**
 * Turns texts into documents: chunks and embeds them, and writes document, chunks and index in one
 * transaction; at once, or as a job. A text that the knowledge base already contains, or whose file name is
 * taken, changes nothing unless `overwriteOnNameConflict` is set; then the transaction also deletes the old
 * document.
 */
export class Ingestion {
  constructor(private readonly parts: IngestParts & { readonly onEnqueued: () => void }) {}

  /**
   * Ingests one text.
   *
   * @throws conflict         the document id is taken
   * @throws invalid_chunker  service and override do not form a valid chunker; the document is stored as
   *                          failed
   * @throws embedding_unavailable, embedding_dimension_mismatch the document is stored as failed
   */
  async ingest(
    workspaceId: string,
    knowledgeBaseId: string,
    body: Ingest,
    caller: Pick<Caller, 'signal'>,
  ): Promise<IngestResult> {
    let prepared: EmbeddedChunks | undefined
    return this.acceptThenWrite({ workspaceId, knowledgeBaseId }, body, async accepted => {
      prepared ??= await this.prepare(accepted, caller)
      const written = await this.write(accepted, prepared)
      if (written === 'space moved') prepared = undefined
      if (typeof written === 'string') return undefined
      this.parts.onIngested(accepted.context)
      return written
    })
  }

  /**
   * Accepts a text and creates a job for the rest. Document, job and text are stored before this resolves.
   *
   * @throws conflict  the document id is taken
   */
  async enqueue(workspaceId: string, knowledgeBaseId: string, body: Ingest): Promise<EnqueueResult> {
    return this.acceptThenWrite({ workspaceId, knowledgeBaseId }, body, accepted =>
      this.writeQueued(accepted),
    )
  }

  /** @param write  returns undefined if another write came first, to start again */
  private acceptThenWrite<T>(
    place: { workspaceId: string; knowledgeBaseId: string },
    body: Ingest,
    write: (accepted: AcceptedIngest) => Promise<T | undefined>,
  ): Promise<T | ExistingDocument> {
    return this.parts.bases.unlessDeleted(place, () => this.retryWrite(place, body, write))
  }

  private async retryWrite<T>(
    { workspaceId, knowledgeBaseId }: { workspaceId: string; knowledgeBaseId: string },
    body: Ingest,
    write: (accepted: AcceptedIngest) => Promise<T | undefined>,
  ): Promise<T | ExistingDocument> {
    const contentHash =
      body.text.length <= inlineHashCharsMax
        ? sha256(body.text)
        : await this.parts.index.run('hash', body.text)
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      const context = await this.parts.bases.context(workspaceId, knowledgeBaseId)
      const accepted = await acceptText(this.parts.rows, context, body, contentHash)
      if ('kind' in accepted) return accepted
      const written = await write(accepted)
      if (written) return written
    }
    throw concurrentChange()
  }

  private async prepare(accepted: AcceptedIngest, caller: Pick<Caller, 'signal'>): Promise<EmbeddedChunks> {
    const { context, body } = accepted
    try {
      const { bases, chunking } = this.parts
      const service = await bases.boundService(chunking, context.base, context.base.chunkingServiceId)
      const title = titleOfPayload(body.metadata)
      const { embedded, ...cut } = await this.parts.index.run('prepare', {
        text: body.text,
        title,
        service,
        override: body.chunker,
        fittedIn: context.fitted ? context.key : undefined,
      })
      if (embedded) return { ...cut, ...embedded }
      const passages = cut.chunks.map(text => ({ title, text }))
      return { ...cut, ...(await this.parts.space.embed(context, passages, 'document', caller.signal)) }
    } catch (error) {
      await this.storeFailed(accepted, error)
      throw error
    }
  }

  /** Returns a string instead of a result if another write came first, and the ingest must start again. */
  private async write(
    accepted: AcceptedIngest,
    prepared: EmbeddedChunks,
  ): Promise<IngestResult | 'space moved' | 'rival came first'> {
    const { context, ingestKey, nameKey } = accepted
    const now = timestamp(this.parts.clock)
    const chunks = prepared.chunks.length
    const state = { status: 'ready', chunkTotal: chunks, ingestedAt: now, updatedAt: now } as const
    const document = createDocument(accepted, state)
    const unit = replacementWrites(context, accepted.replaced, { ...document, ingestKey, nameKey })
    const outcome = await context.store.write(
      [...unit.changes, chunkUpsert(context, document, prepared)],
      unit.rows,
    )
    if (outcome.ok) return { kind: 'ingested', document, chunks }
    await this.throwRefusal(accepted, outcome)
    if (outcome.at < unit.rows.length) return 'rival came first'
    if (outcome.reason === 'absent') throw collectionGone(context.base)
    return 'space moved'
  }

  private async writeQueued(accepted: AcceptedIngest): Promise<EnqueueResult | undefined> {
    const { context, ingestKey, nameKey } = accepted
    const now = timestamp(this.parts.clock)
    const document = createDocument(accepted, { status: 'writing', updatedAt: now })
    const { job, writes } = newJob(document, accepted.body, this.parts.clock)
    // A document that is to be replaced keeps its name until it is deleted.
    const isHeld = accepted.replaced.some(row => row.nameKey === nameKey)
    const row = { ...document, ingestKey, nameKey: isHeld ? null : nameKey, jobId: job.jobId }
    const gone = accepted.replaced.filter(({ documentId }) => documentId === document.documentId)
    const unit = replacementWrites(context, gone, row)
    const outcome = await context.store.write(unit.changes, [...unit.rows, ...writes])
    if (!outcome.ok) {
      await this.throwRefusal(accepted, outcome)
      return undefined
    }
    this.parts.onEnqueued()
    return { kind: 'enqueued', document, job }
  }

  private async throwRefusal(accepted: AcceptedIngest, outcome: WriteOutcome & { ok: false }): Promise<void> {
    const { workspaceId, knowledgeBaseId } = accepted.context.base
    if (outcome.at === 0) await this.parts.bases.get(workspaceId, knowledgeBaseId)
    if (outcome.reason === 'exists') throw documentIdTaken(accepted.documentId)
  }

  /** Stores a failed document with its error. It does not block another ingest of the text. */
  private async storeFailed(accepted: AcceptedIngest, error: unknown): Promise<void> {
    const { context } = accepted
    const errorMessage = presentableMessage(
      error instanceof WbError ? error.message : 'the text could not be ingested',
    )
    const document = createDocument(accepted, {
      status: 'failed',
      errorMessage,
      updatedAt: timestamp(this.parts.clock),
    })
    const earlier = accepted.replaced.filter(({ status }) => status === 'failed')
    const unit = replacementWrites(context, earlier, { ...document, ingestKey: null, nameKey: null })
    await context.store.write(unit.changes, unit.rows)
  }
}

/** Returns the writes that insert a document and delete those that it replaces. */
function replacementWrites(context: BaseContext, replaced: readonly DocumentRow[], row: DocumentRow) {
  const { rows, changes } = documentDeletion(context, replaced)
  return { rows: [...rows, { op: 'insert' as const, table: tables.documents, row }], changes }
}
