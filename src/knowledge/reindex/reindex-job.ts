import { timestamp } from '../../base/clock.ts'
import { sha256 } from '../../base/id.ts'
import { WbError } from '../../contract/errors.ts'
import type { EmbeddingService } from '../../contract/services.ts'
import { ClaimLost, type JobClaim } from '../../jobs/job-claim.ts'
import type { Embedder } from '../../models/embedder.ts'
import { concurrentTextsMax } from '../../models/hosted-embedder.ts'
import type { RecordVector, SpaceKey, UnstagedPassage, VectorSpaces } from '../../storage/content.ts'
import { revisionOf, type Stored } from '../../storage/rows.ts'
import { requireSpaces } from '../../storage/store-features.ts'
import { type KnowledgeBaseRow, type ReindexState, tables } from '../../storage/tables.ts'
import { concurrentChange } from '../guards.ts'
import type { IngestParts } from '../ingestion.ts'
import type { BaseContext } from '../knowledge-bases.ts'
import { toModelText } from '../vector-space.ts'
import { rechunkDocument } from './rechunk-document.ts'

/** Number of documents to list at once. */
const documentsPerRead = 50
/** Generation of a new space to which vectors are added before it is searched. */
const generation = 1
/** Duration of the lease of the new space. The claim of the job already excludes other processes. */
const leaseMs = 600_000
/** Maximum number of attempts. A change of the knowledge base is retried if it changed in the meantime. */
const attemptsMax = 100

export interface ReindexParts extends IngestParts {
  readonly embedding: { get(workspaceId: string, id: string): Promise<EmbeddingService> }
  readonly openEmbedder: (service: EmbeddingService) => Embedder
}

/** Runs the jobs that reindex knowledge bases. A job that is interrupted continues where it ended. */
export class ReindexJob {
  constructor(private readonly parts: ReindexParts) {}

  /**
   * Splits all documents into chunks again, one by one, and embeds all chunks with another service if the job asks for it.
   *
   * @throws ClaimLost
   * @throws knowledge_base_not_found, embedding_service_not_found, invalid_chunker, collection_unavailable
   * @throws embedding_unavailable, embedding_dimension_mismatch
   */
  async perform(claim: JobClaim): Promise<void> {
    try {
      const context = await this.openContext(claim)
      // New chunks are embedded by the service of the knowledge base, so the built-in one goes first: it costs nothing.
      if (context.isFittedByRuntime) await this.rechunkAll(claim)
      await this.changeEmbedding(claim)
      // If the first pass has run, only documents that were added in the meantime are left.
      while (!(await this.rechunkRest(claim)));
    } catch (error) {
      if (claim.isLost) await this.dropSpaceOfCancelled(claim)
      throw error
    }
  }

  private openContext({ job }: JobClaim): Promise<BaseContext> {
    return this.parts.bases.openContext(job.workspaceId, job.knowledgeBaseId!)
  }

  /** Ends the job after all documents. Returns false if the knowledge base changed in the meantime. */
  private async rechunkRest(claim: JobClaim): Promise<boolean> {
    await this.rechunkAll(claim)
    const { base, collection, revision } = await this.openContext(claim)
    if (hashFolders(base) !== stateOf(claim).folders) return false
    const key = [base.workspaceId, base.knowledgeBaseId]
    const outcome = await claim.succeed(
      { chunks: collection.records },
      [{ op: 'require', table: tables.knowledgeBases, key, ...revision }],
      writes => this.parts.rows.atomic(writes),
    )
    return outcome.ok
  }

  /** Splits the documents again that the job has not checked with the current descriptions of folders. */
  private async rechunkAll(claim: JobClaim): Promise<void> {
    const { workspaceId, knowledgeBaseId } = claim.job
    const prefix = [workspaceId, knowledgeBaseId]
    for (;;) {
      const state = await this.startAgainIfDescribed(claim)
      const page = await this.parts.rows.list(tables.documents, {
        index: 'byKnowledgeBase',
        prefix,
        after: [state.checkedThrough],
        limit: documentsPerRead,
      })
      for (const { row, ordinal } of page) {
        claim.signal.throwIfAborted()
        const outcome = await rechunkDocument(this.parts, row, claim.signal)
        const before = stateOf(claim)
        const reindex = { ...before, checkedThrough: ordinal, [outcome]: before[outcome] + 1 }
        await this.advance(claim, row.chunkTotal ?? 0, reindex)
      }
      if (page.length < documentsPerRead) return
    }
  }

  /** Starts again at the first document if descriptions of folders have changed. Returns the state. */
  private async startAgainIfDescribed(claim: JobClaim): Promise<ReindexState> {
    const { base } = await this.openContext(claim)
    const folders = hashFolders(base)
    const state = stateOf(claim)
    if (state.folders === folders) return state
    const reindex = { ...state, folders, checkedThrough: 0, rechunked: 0, unchanged: 0, kept: 0 }
    await claim.advance({ reindex }, [])
    return reindex
  }

  /** Stores the progress. The total is estimated from the number of chunks, which can change in the meantime. */
  private async advance(claim: JobClaim, chunks: number, reindex = stateOf(claim)): Promise<void> {
    const { collection } = await this.openContext(claim)
    const phases = reindex.embeddingServiceId === null ? 1 : 2
    const processed = claim.job.processed + chunks
    await claim.advance({ processed, total: Math.max(processed, phases * collection.records), reindex }, [])
  }

  /** Embeds all chunks with the service of the job, unless the knowledge base already uses it, and changes to it. */
  private async changeEmbedding(claim: JobClaim): Promise<void> {
    const { embeddingServiceId } = stateOf(claim)
    if (embeddingServiceId === null) return
    for (;;) {
      claim.signal.throwIfAborted()
      const context = await this.openContext(claim)
      if (context.base.embeddingServiceId === embeddingServiceId) return
      const service = await this.parts.embedding.get(context.base.workspaceId, embeddingServiceId)
      const space = await this.openSpace(context, service)
      await this.fillSpace(claim, { context, service, space })
      if (await this.switchTo(context, service, space)) return this.parts.onRecordsChanged(context)
    }
  }

  /**
   * Returns the space for the vectors of a service, which is created if it is missing. A space for another model, which an
   * earlier job has left, is dropped.
   */
  private async openSpace(context: BaseContext, service: EmbeddingService): Promise<SpaceKey> {
    const { store, key, base } = context
    const name = spaceNameOf(service)
    const space = { ...key, space: name }
    if (base.reindexSpace === name && (await store.collection(space))) return space
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      const { base: row, revision } = await this.parts.bases.openContext(
        base.workspaceId,
        base.knowledgeBaseId,
      )
      const outcome = await store.write(
        [
          ...[row.reindexSpace, name].flatMap(old =>
            old === undefined ? [] : [{ op: 'dropSpace' as const, ...key, space: old }],
          ),
          {
            op: 'createSpace',
            ...space,
            dimension: service.embeddingDimension,
            metric: service.distanceMetric,
            isSearchable: true,
          },
        ],
        [{ op: 'replace', table: tables.knowledgeBases, row: { ...row, reindexSpace: name }, ...revision }],
      )
      if (outcome.ok) return space
    }
    throw concurrentChange()
  }

  /** Adds the missing vectors to the space, in order, and stores them step by step. */
  private async fillSpace(claim: JobClaim, filling: SpaceFilling): Promise<void> {
    const { context, service, space } = filling
    const spaces = requireSpaces(context.store)
    const owner = `reindex:${claim.job.jobId}`
    for (;;) {
      claim.signal.throwIfAborted()
      const passages = await spaces.unstaged(space, generation, concurrentTextsMax(service))
      if (passages.length === 0) return
      const vectors = await this.embed(passages, service, claim.signal)
      if (!(await this.stage(spaces, space, owner, vectors)))
        throw new WbError('collection_unavailable', 'the new vectors could not be stored')
      await this.advance(claim, passages.length)
    }
  }

  private async stage(
    spaces: VectorSpaces,
    space: SpaceKey,
    owner: string,
    vectors: readonly RecordVector[],
  ): Promise<boolean> {
    if (!(await spaces.lease(space, owner, leaseMs))) return false
    try {
      return await spaces.stage(space, { generation, owner }, vectors)
    } finally {
      await spaces.release(space, owner)
    }
  }

  /** A passage without text gets a vector that is similar to nothing. */
  private async embed(
    passages: readonly UnstagedPassage[],
    service: EmbeddingService,
    signal: AbortSignal,
  ): Promise<RecordVector[]> {
    const isEmpty = (passage: UnstagedPassage) => toModelText(passage).trim() === ''
    const missing = passages.filter(passage => !passage.vector && !isEmpty(passage))
    const embedder = this.parts.openEmbedder(service)
    const embedded =
      missing.length > 0
        ? await embedder.embed(missing.map(toModelText), signal, 'document', { retryPolicy: 'job' })
        : []
    const added = embedded.values()
    return passages.map(passage => ({
      record: passage.record,
      vector:
        passage.vector ??
        (isEmpty(passage) ? new Float32Array(service.embeddingDimension) : added.next().value!),
    }))
  }

  /**
   * Changes the knowledge base to a service, and its vectors to the new space, in one transaction. Returns false if a record
   * was added, or if the knowledge base or the service changed in the meantime.
   */
  private async switchTo(
    { base, store, key }: BaseContext,
    service: EmbeddingService,
    space: SpaceKey,
  ): Promise<boolean> {
    const { workspaceId, knowledgeBaseId } = base
    const { embeddingServiceId } = service
    const [row, target] = await Promise.all([
      this.parts.rows.get(tables.knowledgeBases, [workspaceId, knowledgeBaseId]),
      this.parts.rows.get(tables.embeddingServices, [workspaceId, embeddingServiceId]),
    ])
    if (!row || !target || spaceNameOf(target.row) !== space.space) return false
    const outcome = await store.write(
      [{ op: 'promoteSpace', ...key, space: space.space }],
      [
        {
          op: 'replace',
          table: tables.knowledgeBases,
          row: this.withService(row, embeddingServiceId),
          ...revisionOf(row),
        },
        {
          op: 'require',
          table: tables.embeddingServices,
          key: [workspaceId, embeddingServiceId],
          ...revisionOf(target),
        },
      ],
    )
    return outcome.ok
  }

  private withService({ row }: Stored<KnowledgeBaseRow>, embeddingServiceId: string): KnowledgeBaseRow {
    const { reindexSpace: _, ...rest } = row
    return { ...rest, embeddingServiceId, updatedAt: timestamp(this.parts.clock) }
  }

  /** Drops the space that a cancelled job has filled. After a failure, the next job continues with it. */
  private async dropSpaceOfCancelled(claim: JobClaim): Promise<void> {
    const { workspaceId, jobId } = claim.job
    const job = await this.parts.rows.get(tables.jobs, [workspaceId, jobId])
    if (job?.row.errorMessage !== 'cancelled') return
    const { base, store, key } = await this.openContext(claim)
    if (base.reindexSpace) await store.write([{ op: 'dropSpace', ...key, space: base.reindexSpace }], [])
  }
}

interface SpaceFilling {
  readonly context: BaseContext
  readonly service: EmbeddingService
  readonly space: SpaceKey
}

function stateOf({ job }: JobClaim): ReindexState {
  if (!job.reindex) throw new ClaimLost()
  return job.reindex
}

function hashFolders({ folders = [] }: KnowledgeBaseRow): string {
  return sha256(JSON.stringify(folders))
}

/** Returns the name of the space for the vectors of a service, which depends on everything that its vectors depend on. */
function spaceNameOf(service: EmbeddingService): SpaceKey['space'] & string {
  const { embeddingServiceId, provider, modelName, embeddingDimension, distanceMetric } = service
  const model = [embeddingServiceId, provider, modelName, embeddingDimension, distanceMetric]
  return `reindex-${sha256(JSON.stringify(model)).slice(0, 16)}`
}
