import { isDeepStrictEqual } from 'node:util'
import { documentMatcher } from '../../access/policy/document-fields.ts'
import { noPrincipal } from '../../access/row-access.ts'
import { timestamp } from '../../base/clock.ts'
import type { FairByteLimiter } from '../../base/fair-byte-limiter.ts'
import { sha256 } from '../../base/id.ts'
import { folderOf } from '../../contract/folder-description.ts'
import type { DocumentIngestReport } from '../../contract/ingest-report.ts'
import { endReport, enterStage, newIngestReport, startAttempt } from '../../jobs/ingest-report.ts'
import { documentOfJob } from '../../jobs/job-changes.ts'
import type { JobClaim } from '../../jobs/job-claim.ts'
import { concurrentTextsMax } from '../../models/hosted-embedder.ts'
import type { EmbeddedPassage } from '../../models/lsa.ts'
import { revisionOf, type Stored } from '../../storage/rows.ts'
import { type DocumentRow, tables } from '../../storage/tables.ts'
import type { Actor } from '../../storage/visibility.ts'
import { type ChunkedText, passagesOf } from '../chunk-text.ts'
import { baseCollectionMissing, concurrentChange } from '../guards.ts'
import { jobTurn } from '../index-threads.ts'
import { type IngestParts, sizeInMemory } from '../ingestion.ts'
import type { BaseContext } from '../knowledge-bases.ts'
import type { EmbeddedVectors } from '../passage-operations.ts'
import { titleOfPayload } from '../payload.ts'
import { retryOnSpaceChange } from '../vector-space.ts'
import { chunkIdTaken, documentsWithName, domainOf, nameKeyOf } from './accept-text.ts'
import { chunkInsertion, documentDeletionWrites, type EmbeddedChunks } from './document-writes.ts'
import { modelOf } from './recent-vectors.ts'
import { reportChunks, reportRequest, reportReused } from './report-chunks.ts'
import { ReusedVectors, type TextVersions } from './reused-vectors.ts'
import { documentNoLongerExists, readStoredBatches, storeBatch } from './stored-batches.ts'
import { layoutOf, type StructuredIngest } from './structured-ingest.ts'

/** Number of passages that are embedded between two progress reports, in a space that the runtime fits. */
const passagesPerReport = 512
/** Maximum number of attempts of a write. It is retried if its rows changed in the meantime. */
const attemptsMax = 100

/** A job in progress: its claim, its knowledge base, and its input. */
interface IngestWork {
  readonly claim: JobClaim
  context: BaseContext
  readonly body: StructuredIngest
  /** Caller that created the job; absent for a job of an earlier version. */
  readonly actor: Actor | undefined
  /** Report of this attempt. It is stored with each stage of the document. */
  report: DocumentIngestReport
}

interface IngestJobParts extends IngestParts {
  /** Limits the texts that jobs process at the same time. */
  readonly jobsInProgress: FairByteLimiter
}

type DocumentStage = { readonly status: 'chunking' | 'embedding' | 'writing' } & Partial<
  Pick<DocumentRow, 'chunkTotal'>
>

/** Runs the jobs of asynchronous ingests. A new attempt reuses the stored vectors of earlier attempts. */
export class IngestJob {
  constructor(private readonly parts: IngestJobParts) {}

  /**
   * Chunks, embeds and writes the document of a job. Stores vectors from a provider for later attempts.
   *
   * @throws ClaimLost
   * @throws knowledge_base_not_found, document_not_found, invalid_chunker, collection_unavailable
   * @throws conflict  a record has the ID of a chunk
   * @throws embedding_unavailable, embedding_dimension_mismatch
   */
  async perform(claim: JobClaim): Promise<void> {
    const { workspaceId, knowledgeBaseId, jobId } = claim.job
    const input = await this.parts.rows.get(tables.jobInputs, [workspaceId, jobId])
    if (!input) throw documentNoLongerExists()
    const { body, actor } = input.row
    const bytes = sizeInMemory(body.text)
    await this.parts.jobsInProgress.run({ workspaceId, bytes, signal: claim.signal }, async () => {
      const { ingestReport } = (await this.requireDocument(claim)).row
      const context = await this.parts.bases.openContext(workspaceId, knowledgeBaseId!)
      const nowMs = this.parts.clock.now()
      const received = ingestReport ?? newIngestReport(nowMs, Buffer.byteLength(body.text))
      await this.process({ claim, context, body, actor, report: startAttempt(received, nowMs) })
    })
  }

  private async process(work: IngestWork): Promise<void> {
    const { claim } = work
    const { workspaceId, knowledgeBaseId } = claim.job
    let chunked = await this.chunk(work)
    await retryOnSpaceChange(async () => {
      const { context: before } = work
      work.context = await this.parts.bases.openContext(workspaceId, knowledgeBaseId!)
      if (!isDeepStrictEqual(work.context.revision, before.revision)) chunked = await this.chunk(work)
      const title = titleOfPayload((await this.requireDocument(claim)).row.metadata)
      const passages = passagesOf(title, chunked.chunks)
      const embedded = await this.embed(work, passages).catch(error => this.rethrowEmbedding(work, error))
      if (!embedded) return undefined
      await this.setStage(work, { status: 'writing' })
      return this.write(work, { ...chunked, ...embedded }, title)
    })
    await this.parts.onRecordsChanged(work.context)
  }

  private async chunk(work: IngestWork): Promise<ChunkedText> {
    await this.setStage(work, { status: 'chunking' })
    const { context, body, claim } = work
    const { bases, chunking } = this.parts
    const service = await bases.boundService(chunking, context.base, context.base.chunkingServiceId)
    const { row } = await this.requireDocument(claim)
    const {
      embedded: _,
      embeddingMs: __,
      ...chunked
    } = await this.parts.index.run(jobTurn(claim.job.workspaceId), 'prepare', {
      text: body.text,
      title: null,
      service,
      override: body.chunker,
      layout: layoutOf(body),
      folder: folderOf(context.base.folders, row.sourceFilename)?.description,
      fittedIn: undefined,
    })
    const total = chunked.chunks.length
    const title = titleOfPayload((await this.requireDocument(claim)).row.metadata)
    work.report = reportChunks(work.report, context, { ...chunked, title })
    await this.setStage(work, { status: 'embedding', chunkTotal: total }, { total })
    return chunked
  }

  /** @throws document_not_found */
  private async requireDocument(claim: JobClaim): Promise<Stored<DocumentRow>> {
    const document = await documentOfJob(this.parts.rows, claim.job)
    if (!document) throw documentNoLongerExists()
    return document
  }

  /** Stores the report of an embedding that failed, with its requests, and throws the error. */
  private async rethrowEmbedding({ claim, report }: IngestWork, error: unknown): Promise<never> {
    const store = async () => {
      const before = await this.requireDocument(claim)
      const after = { ...before.row, ingestReport: report }
      await claim.advance({}, [{ op: 'replace', table: tables.documents, row: after, ...revisionOf(before) }])
    }
    // If the document or the claim is lost, the report cannot be stored. The original error ends the job in any case.
    await store().catch(() => {})
    throw error
  }

  /** Sets the current stage of the document. */
  private async setStage(
    work: IngestWork,
    stage: DocumentStage,
    change: { total?: number } = {},
  ): Promise<void> {
    const { claim } = work
    const updatedAt = timestamp(this.parts.clock)
    work.report = enterStage(work.report, stage.status, Date.parse(updatedAt))
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      const before = await this.requireDocument(claim)
      const after = { ...before.row, ...stage, updatedAt, ingestReport: work.report }
      const outcome = await claim.advance(change, [
        { op: 'replace', table: tables.documents, row: after, ...revisionOf(before) },
      ])
      if (outcome.ok) return
    }
    throw concurrentChange()
  }

  /** Embeds the passages. Returns undefined if the vector space changed in the meantime. */
  private embed(
    work: IngestWork,
    passages: readonly EmbeddedPassage[],
  ): Promise<EmbeddedVectors | undefined> {
    return work.context.isFittedByRuntime
      ? this.embedLocally(work, passages)
      : this.embedWithProvider(work, passages)
  }

  private async embedLocally(
    { claim, context }: IngestWork,
    passages: readonly EmbeddedPassage[],
  ): Promise<EmbeddedVectors | undefined> {
    let { generation } = context.collection
    const vectors: Float32Array[] = []
    for (let start = 0; start < passages.length; start += passagesPerReport) {
      const slice = passages.slice(start, start + passagesPerReport)
      const embedded = await this.parts.index.run(jobTurn(context.key.workspaceId), 'embed', {
        key: context.key,
        passages: slice,
      })
      if (start > 0 && embedded.generation !== generation) return undefined
      generation = embedded.generation
      vectors.push(...embedded.vectors)
      const processed = Math.max(claim.job.processed, vectors.length)
      if (processed > claim.job.processed) await claim.advance({ processed }, [])
    }
    return { generation, vectors }
  }

  /** Requests a batch of vectors from the provider only if no earlier attempt has stored it. */
  private async embedWithProvider(
    work: IngestWork,
    passages: readonly EmbeddedPassage[],
  ): Promise<EmbeddedVectors | undefined> {
    const { claim, context } = work
    const { generation } = context.collection
    const size = concurrentTextsMax(context.embedding)
    const hashSource = (batch: readonly EmbeddedPassage[]) =>
      sha256(JSON.stringify([modelOf(context), batch]))
    const vectors: Float32Array[] = []
    for await (const batch of readStoredBatches(this.parts.rows, claim)) {
      const texts = passages.slice(vectors.length, vectors.length + batch.vectors.length)
      if (batch.start !== vectors.length || batch.source !== hashSource(texts)) break
      vectors.push(...batch.vectors)
    }
    work.report = reportReused(work.report, vectors.length)
    if (vectors.length === passages.length) return { generation, vectors }
    const rest = passages.slice(vectors.length)
    const reused = await ReusedVectors.open(this.parts, await this.versionsOf(work), rest)
    while (vectors.length < passages.length) {
      const start = vectors.length
      const batch = passages.slice(start, start + size)
      const embedded = await reused.embed(batch, claim.signal, {
        retryPolicy: 'job',
        onRequest: () => {
          work.report = reportRequest(work.report)
        },
        onReused: count => {
          work.report = reportReused(work.report, count)
        },
      })
      vectors.push(...embedded.vectors)
      await storeBatch(claim, { start, source: hashSource(batch), vectors: embedded.vectors })
    }
    return { generation, vectors }
  }

  /** Returns the documents that this document will probably replace, as far as the creator of the job may see them. */
  private async versionsOf({ claim, context, actor }: IngestWork): Promise<TextVersions> {
    const { row, ordinal } = await this.requireDocument(claim)
    const access = await this.parts.accessOf(actor ?? noPrincipal, row.workspaceId)
    const { visibility } = access.openChange(context.base, { action: 'ingest' })
    const isVisible = documentMatcher(visibility)
    const named = { name: row.sourceFilename, domain: domainOf(access, row.ownerPrincipalId) }
    const replaced = (await documentsWithName(this.parts.rows, context, named))
      .filter(other => other.ordinal < ordinal && isVisible(other.row))
      .map(other => other.row)
    return { context, access, visibility, replaced }
  }

  /**
   * Writes the document and its chunks, deletes the documents that it replaces, and ends the job, all in one
   * transaction. Returns undefined if the knowledge base, the vector space or, in a fitted space, the title changed in the
   * meantime.
   */
  private async write(
    work: IngestWork,
    prepared: EmbeddedChunks,
    title: string | null,
  ): Promise<true | undefined> {
    const { claim, context } = work
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      await this.parts.whenWritable(context)
      const before = await this.requireDocument(claim)
      if (context.isFittedByRuntime && titleOfPayload(before.row.metadata) !== title) return undefined
      const { replaced, nameKey } = await this.findReplaced(work, before)
      const now = timestamp(this.parts.clock)
      const row: DocumentRow = {
        ...before.row,
        status: 'ready',
        errorMessage: null,
        chunkTotal: prepared.chunks.length,
        ingestedAt: now,
        updatedAt: now,
        nameKey,
        jobId: null,
        ingestReport: endReport(work.report, Date.parse(now)),
      }
      const deletion = documentDeletionWrites(context, replaced)
      const rows = [
        ...deletion.rows,
        { op: 'replace' as const, table: tables.documents, row, ...revisionOf(before) },
      ]
      const changes = [...deletion.changes, ...chunkInsertion(context, row, prepared)]
      const outcome = await claim.succeed({ chunks: prepared.chunks.length }, rows, rowWrites =>
        context.store.write(changes, rowWrites),
      )
      if (outcome.ok) return true
      if (outcome.at === 0) {
        await this.parts.bases.get(claim.job.workspaceId, claim.job.knowledgeBaseId!)
        return undefined
      }
      if (outcome.at < rows.length) continue
      if (outcome.reason === 'absent') throw baseCollectionMissing(context.base)
      if (outcome.at === rows.length + deletion.changes.length) throw chunkIdTaken(row.documentId)
      return undefined
    }
    throw concurrentChange()
  }

  /**
   * Returns the documents that this document replaces, and its name key. The key is null if a later document has it.
   */
  private async findReplaced({ context, body, actor }: IngestWork, { row, ordinal }: Stored<DocumentRow>) {
    const access = await this.parts.accessOf(actor ?? noPrincipal, row.workspaceId)
    // Read again, because its policy can change while the job is running.
    const base = await this.parts.bases.get(row.workspaceId, row.knowledgeBaseId)
    const change = access.openChange(base, { action: 'ingest', resourceId: row.documentId })
    change.authorize(true)
    const isVisible = documentMatcher(change.visibility)
    const domain = domainOf(access, row.ownerPrincipalId)
    const named = { name: row.sourceFilename, domain }
    const sameName = await documentsWithName(this.parts.rows, context, named)
    const replaced = sameName
      .filter(other => other.ordinal < ordinal && isVisible(other.row))
      .filter(other => body.overwriteOnNameConflict || other.row.status === 'failed')
    const hidden = sameName.filter(other => other.ordinal !== ordinal && !isVisible(other.row))
    const nameKey = nameKeyOf(context, named, hidden)
    const isRenamed = row.sourceFilename !== body.sourceFilename
    const isNameTaken = sameName.some(other => other.row.nameKey === nameKey && other.ordinal > ordinal)
    return isRenamed
      ? { replaced: [], nameKey: row.nameKey }
      : { replaced, nameKey: isNameTaken ? null : nameKey }
  }
}
