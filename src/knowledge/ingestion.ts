import type { Caller } from '../access/caller.ts'
import type { AccessOf } from '../access/row-access.ts'
import { type Clock, timestamp } from '../base/clock.ts'
import type { FairByteLimiter } from '../base/fair-byte-limiter.ts'
import { sha256 } from '../base/id.ts'
import type { Document, FileCheck, FileState } from '../contract/documents.ts'
import { overloaded } from '../contract/errors.ts'
import { folderOf } from '../contract/folder-description.ts'
import type { DocumentIngestReport } from '../contract/ingest-report.ts'
import type { Job } from '../contract/jobs.ts'
import type { ChunkingService } from '../contract/services.ts'
import { describeFailure, endReport, enterStage, failReport, newIngestReport } from '../jobs/ingest-report.ts'
import { newJob } from '../jobs/job-changes.ts'
import type { RowStore, Stored, WriteOutcome } from '../storage/rows.ts'
import { type DocumentRow, tables } from '../storage/tables.ts'
import type { Services } from '../workspaces/services.ts'
import { passagesOf } from './chunk-text.ts'
import type { BaseKey } from './document-key.ts'
import type { WritingCaller } from './documents.ts'
import { baseCollectionMissing, concurrentChange } from './guards.ts'
import { callerTurn, type IndexThreads } from './index-threads.ts'
import {
  type AcceptedIngest,
  acceptText,
  chunkIdTaken,
  documentIdTaken,
  type ExistingDocument,
  statesOfFiles,
} from './ingest/accept-text.ts'
import {
  chunkInsertion,
  createDocument,
  documentDeletionWrites,
  type EmbeddedChunks,
} from './ingest/document-writes.ts'
import type { IngestQueue } from './ingest/ingest-queue.ts'
import type { RecentVectors } from './ingest/recent-vectors.ts'
import { reportChunks, reportRequest, reportReused } from './ingest/report-chunks.ts'
import { ReusedVectors } from './ingest/reused-vectors.ts'
import { layoutOf, type StructuredIngest } from './ingest/structured-ingest.ts'
import type { BaseContext, KnowledgeBases } from './knowledge-bases.ts'
import { authorizeOwner } from './ownership.ts'
import { titleOfPayload } from './payload.ts'
import { idReservation } from './trash/reserved-ids.ts'
import { isSpaceChange, type VectorSpace } from './vector-space.ts'

/** Maximum length of a text that is hashed on this thread. At this length, hashing takes less than a millisecond. */
const inlineHashCharsMax = 250_000
/**
 * Maximum number of attempts. An ingest is retried if the same rows changed in the meantime.
 */
const attemptsMax = 100
/** Maximum time in milliseconds that a request waits before its text is processed. */
const requestWaitMsMax = 10_000

export type IngestResult =
  | { readonly kind: 'ingested'; readonly document: Document; readonly chunks: number }
  | ExistingDocument

export type EnqueueResult =
  | { readonly kind: 'enqueued'; readonly document: Document; readonly job: Job }
  | ExistingDocument

/** Chunks with their vectors, and the report of how they were made. */
type PreparedIngest = EmbeddedChunks & { readonly report: DocumentIngestReport }

type IngestingCaller = WritingCaller & Pick<Caller, 'reauthorize' | 'signal'>

export interface IngestParts {
  readonly rows: RowStore
  readonly clock: Clock
  readonly bases: KnowledgeBases
  readonly chunking: Services<ChunkingService>
  readonly space: VectorSpace
  readonly recent: RecentVectors
  /** Chunks and embeds ingested texts. */
  readonly index: IndexThreads
  /** Called before each write of chunks. Resolves when the knowledge base accepts new chunks. */
  readonly whenWritable: (context: BaseContext) => Promise<void>
  /** Called after records were stored or deleted, to start a fit if one is due. */
  readonly onRecordsChanged: (context: BaseContext) => Promise<void>
  readonly accessOf: AccessOf
}

interface IngestionParts extends IngestParts {
  /** Limits the texts that wait for jobs. */
  readonly queue: IngestQueue
  /** Limits the texts that are processed at the same time, other than those of jobs. */
  readonly inProgress: FairByteLimiter
  readonly onEnqueued: () => void
}

/**
 * Ingests texts, immediately or in a job. Chunks and embeds a text, then writes the document, its chunks and its index
 * entries in one transaction. A text that the knowledge base already contains is not ingested again. If a document with
 * the same file name exists, the text replaces it if `overwriteOnNameConflict` is set, and is not ingested otherwise.
 */
export class Ingestion {
  constructor(private readonly parts: IngestionParts) {}

  /**
   * Ingests one text. Waits while the texts in progress take up the memory for them.
   *
   * @param waitMsMax  maximum time to wait in milliseconds; null for no limit
   * @throws overloaded       there was no memory for the text in this time
   * @throws the reason of the caller's signal, if the client disconnects before that and there is a maximum time
   * @throws forbidden        the owner is another principal, and the caller lacks `manage:access`
   * @throws conflict         another document has the requested ID, or a record has the ID of a chunk
   * @throws invalid_chunker  the combination of service and override is invalid; the document is stored as failed
   * @throws embedding_unavailable, embedding_dimension_mismatch  the document is stored as failed
   */
  async ingest(
    workspaceId: string,
    knowledgeBaseId: string,
    body: StructuredIngest,
    caller: IngestingCaller,
    waitMsMax: number | null = requestWaitMsMax,
  ): Promise<IngestResult> {
    const waiting = new AbortController()
    const expire = () => waiting.abort(overloaded('too much text is being ingested'))
    const cancel = waitMsMax === null ? () => {} : this.parts.clock.after(waitMsMax, expire)
    // The lines of a batch that have arrived are ingested, so that each has a result.
    const signal = waitMsMax === null ? waiting.signal : AbortSignal.any([caller.signal, waiting.signal])
    const size = { workspaceId, bytes: sizeInMemory(body.text), signal }
    try {
      return await this.parts.inProgress.run(size, () => {
        cancel()
        return this.ingestNow({ workspaceId, knowledgeBaseId }, body, caller)
      })
    } finally {
      cancel()
    }
  }

  private ingestNow(
    address: BaseKey,
    body: StructuredIngest,
    caller: IngestingCaller,
  ): Promise<IngestResult> {
    let prepared: PreparedIngest | undefined
    return this.acceptThenWrite(address, body, caller, async accepted => {
      if (!prepared) {
        prepared = await this.prepare(accepted, caller)
        if (!prepared) return undefined
        await this.parts.whenWritable(accepted.context)
        // This can take seconds. A revocation in the meantime must take effect.
        await caller.reauthorize()
        if (accepted.access.isEnabled) return undefined
      }
      const result = await this.write(accepted, prepared)
      if (result === 'base changed' || result === 'space changed') prepared = undefined
      if (typeof result === 'string') return undefined
      await this.parts.onRecordsChanged(accepted.context)
      return result
    })
  }

  /** Compares files with the stored documents. Returns their states in the same order. */
  async check(
    { workspaceId, knowledgeBaseId }: BaseKey,
    check: FileCheck,
    caller: WritingCaller,
  ): Promise<FileState[]> {
    const context = await this.parts.bases.openContext(workspaceId, knowledgeBaseId)
    return statesOfFiles(this.parts.rows, context, check, await caller.rowAccess(workspaceId))
  }

  /**
   * Accepts a text, and creates a job that ingests it. When the promise resolves, the document, the job and the text
   * are stored.
   *
   * @throws forbidden  the owner is another principal, and the caller lacks `manage:access`
   * @throws conflict   another document has the requested ID
   * @throws overloaded  too much text is waiting for jobs
   */
  async enqueue(
    workspaceId: string,
    knowledgeBaseId: string,
    body: StructuredIngest,
    caller: IngestingCaller,
  ): Promise<EnqueueResult> {
    return this.acceptThenWrite({ workspaceId, knowledgeBaseId }, body, caller, async accepted => {
      // The conversion of a file can take seconds. A revocation in the meantime must take effect.
      await caller.reauthorize()
      return this.writeQueued(accepted)
    })
  }

  /** @param write  returns undefined if concurrent changes require another attempt */
  private acceptThenWrite<T>(
    address: BaseKey,
    body: StructuredIngest,
    caller: WritingCaller,
    write: (accepted: AcceptedIngest) => Promise<T | undefined>,
  ): Promise<T | ExistingDocument> {
    return this.parts.bases.withDeletionCheck(address, () => this.retryWrite(address, body, caller, write))
  }

  private async retryWrite<T>(
    { workspaceId, knowledgeBaseId }: BaseKey,
    body: StructuredIngest,
    caller: WritingCaller,
    write: (accepted: AcceptedIngest) => Promise<T | undefined>,
  ): Promise<T | ExistingDocument> {
    const contentHash =
      body.text.length <= inlineHashCharsMax
        ? sha256(body.text)
        : await this.parts.index.run(callerTurn(workspaceId, caller), 'hash', body.text)
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      const context = await this.parts.bases.openContext(workspaceId, knowledgeBaseId)
      const access = await caller.rowAccess(workspaceId)
      authorizeOwner(body, access, workspaceId, caller)
      const accepted = await acceptText(this.parts.rows, context, { body, contentHash, access })
      if ('kind' in accepted) return accepted
      const result = await write(accepted)
      if (result) return result
    }
    throw concurrentChange()
  }

  /** Returns undefined if the knowledge base changed to another embedding service in the meantime. */
  private async prepare(
    accepted: AcceptedIngest,
    caller: Pick<Caller, 'auth' | 'signal'>,
  ): Promise<PreparedIngest | undefined> {
    const { context, body } = accepted
    const { clock } = this.parts
    const received = newIngestReport(clock.now(), Buffer.byteLength(body.text), body.extraction)
    let report = enterStage(received, 'chunking', clock.now())
    try {
      const { bases, chunking } = this.parts
      const service = await bases.boundService(chunking, context.base, context.base.chunkingServiceId)
      const title = titleOfPayload(body.metadata)
      const turn = callerTurn(context.base.workspaceId, caller)
      const { embedded, embeddingMs, ...chunked } = await this.parts.index.run(turn, 'prepare', {
        text: body.text,
        title,
        service,
        override: body.chunker,
        layout: layoutOf(body),
        folder: folderOf(context.base.folders, body.sourceFilename)?.description,
        fittedIn: context.isFittedByRuntime ? context.key : undefined,
      })
      const chunkedAtMs = clock.now() - Math.round(embeddingMs)
      report = enterStage(reportChunks(report, context, { ...chunked, title }), 'embedding', chunkedAtMs)
      if (embedded) return { ...chunked, ...embedded, report: endReport(report, clock.now()) }
      const passages = passagesOf(title, chunked.chunks)
      const { access, replaced } = accepted
      const { visibility } = access.openChange(context.base, { action: 'ingest' })
      const earlier = replaced.map(({ row }) => row)
      const reused = await ReusedVectors.open(
        this.parts,
        { context, access, visibility, replaced: earlier },
        passages,
      )
      const vectors = await reused.embed(passages, caller.signal, {
        retryPolicy: 'request',
        onRequest: () => {
          report = reportRequest(report)
        },
        onReused: count => {
          report = reportReused(report, count)
        },
      })
      return { ...chunked, ...vectors, report: endReport(report, clock.now()) }
    } catch (error) {
      if (isSpaceChange(error)) return undefined
      await this.storeFailed(accepted, error, report)
      throw error
    }
  }

  /** Returns a string if the ingest must be retried, because the knowledge base, the vector space or other rows have changed. */
  private async write(
    accepted: AcceptedIngest,
    prepared: PreparedIngest,
  ): Promise<IngestResult | 'base changed' | 'space changed' | 'rows changed'> {
    const { context, ingestKey, nameKey } = accepted
    const now = timestamp(this.parts.clock)
    const chunks = prepared.chunks.length
    const state = { status: 'ready', chunkTotal: chunks, ingestedAt: now, updatedAt: now } as const
    const document = createDocument(accepted, state)
    const { report: ingestReport } = prepared
    const row = { ...document, ingestKey, nameKey, ingestReport }
    const writes = replacementWrites(accepted, accepted.replaced, row)
    const outcome = await context.store.write(
      [...writes.changes, ...chunkInsertion(context, document, prepared)],
      writes.rows,
    )
    if (outcome.ok) return { kind: 'ingested', document, chunks }
    await this.throwIfFinal(accepted, outcome)
    if (outcome.at === 0) return 'base changed'
    if (outcome.at < writes.rows.length) return 'rows changed'
    if (outcome.reason === 'absent') throw baseCollectionMissing(context.base)
    if (outcome.at === writes.rows.length + writes.changes.length) throw chunkIdTaken(document.documentId)
    return 'space changed'
  }

  private async writeQueued(accepted: AcceptedIngest): Promise<EnqueueResult | undefined> {
    const { context, ingestKey, nameKey } = accepted
    const now = timestamp(this.parts.clock)
    const nowMs = Date.parse(now)
    const received = newIngestReport(nowMs, Buffer.byteLength(accepted.body.text), accepted.body.extraction)
    const ingestReport = enterStage(received, 'queued', nowMs)
    const document = createDocument(accepted, { status: 'writing', updatedAt: now })
    const { body, access } = accepted
    const { job, writes } = newJob(document, { body, actor: access.actor }, this.parts.clock)
    // An older document with this name keeps its name key until the job replaces the document.
    const isNameTaken = accepted.replaced.some(({ row }) => row.nameKey === nameKey)
    const row = {
      ...document,
      ingestKey,
      nameKey: isNameTaken ? null : nameKey,
      jobId: job.jobId,
      ingestReport,
    }
    const deleted = accepted.replaced.filter(({ row }) => row.documentId === document.documentId)
    const replacement = replacementWrites(accepted, deleted, row)
    const stopCounting = await this.parts.queue.add(context.base.workspaceId, body.text)
    const outcome = await context.store.write(replacement.changes, [...replacement.rows, ...writes])
    if (!outcome.ok) {
      stopCounting()
      await this.throwIfFinal(accepted, outcome)
      return undefined
    }
    this.parts.onEnqueued()
    if (deleted.length > 0) await this.parts.onRecordsChanged(context)
    return { kind: 'enqueued', document, job }
  }

  /** Throws an error for a failed write, unless a retry can succeed. */
  private async throwIfFinal(accepted: AcceptedIngest, outcome: WriteOutcome & { ok: false }): Promise<void> {
    const { workspaceId, knowledgeBaseId } = accepted.context.base
    if (outcome.at === 0) await this.parts.bases.get(workspaceId, knowledgeBaseId)
    if (outcome.reason === 'exists') throw documentIdTaken(accepted.documentId)
  }

  /** Stores the document as failed, with its error. The same text can then be ingested again. */
  private async storeFailed(
    accepted: AcceptedIngest,
    error: unknown,
    report: DocumentIngestReport,
  ): Promise<void> {
    const { context } = accepted
    // The deleted document with this ID can still be restored.
    if (accepted.replacedEntries.length > 0) return
    const failure = describeFailure(error)
    const updatedAt = timestamp(this.parts.clock)
    const document = createDocument(accepted, { status: 'failed', errorMessage: failure.message, updatedAt })
    const earlierFailures = accepted.replaced.filter(({ row }) => row.status === 'failed')
    const writes = replacementWrites(accepted, earlierFailures, {
      ...document,
      ingestKey: null,
      nameKey: null,
      ingestReport: failReport(report, failure, Date.parse(updatedAt)),
    })
    await context.store.write(writes.changes, writes.rows)
  }
}

/** Returns the maximum size of a text in memory, in bytes. */
export function sizeInMemory(text: string): number {
  return text.length * 2
}

/** Returns the writes that insert a document and delete the documents that it replaces. */
function replacementWrites(
  { context, access, body, replacedEntries }: AcceptedIngest,
  replaced: readonly Stored<DocumentRow>[],
  document: DocumentRow,
) {
  const { rows, changes } = documentDeletionWrites(context, replaced)
  const row: DocumentRow = {
    ...document,
    chunking: {
      ...(body.chunker && { override: body.chunker }),
      isMarkdown: layoutOf(body).isMarkdown,
    },
    ...(access.isEnabled && { isVisibilityDecided: true }),
    createdAt: document.updatedAt,
  }
  const insertion = { op: 'insert' as const, table: tables.documents, row }
  return { rows: [...rows, ...idReservation(row, replacedEntries), insertion], changes }
}
