import { authorizeStoredDestination } from '../../access/authorize-destination.ts'
import type { Caller } from '../../access/caller.ts'
import { type Clock, timestamp } from '../../base/clock.ts'
import { WbError } from '../../contract/errors.ts'
import type { Job } from '../../contract/jobs.ts'
import type { Reindexing, ReindexRequest } from '../../contract/knowledge.ts'
import { builtInProvider } from '../../contract/providers.ts'
import type { ChunkingService, EmbeddingService } from '../../contract/services.ts'
import { pendingJob } from '../../jobs/job-changes.ts'
import type { RowStore } from '../../storage/rows.ts'
import { requireListing, requireSpaces } from '../../storage/store-features.ts'
import { type KnowledgeBaseRow, tables } from '../../storage/tables.ts'
import type { Services } from '../../workspaces/services.ts'
import { createChunker } from '../chunk/index.ts'
import type { BaseKey } from '../document-key.ts'
import { concurrentChange, requireImported, requireVectors } from '../guards.ts'
import { type BaseContext, type KnowledgeBases, requireFullVisibility } from '../knowledge-bases.ts'

/** Maximum number of attempts. A start is retried if the knowledge base changed in the meantime. */
const attemptsMax = 20

interface ReindexJobsParts {
  readonly rows: RowStore
  readonly clock: Clock
  readonly bases: KnowledgeBases
  readonly chunking: Services<ChunkingService>
  readonly embedding: Services<EmbeddingService>
  /** Called after a job was created. */
  readonly onEnqueued: () => void
}

/** Starts jobs that reindex knowledge bases, and shows the last one. */
export class ReindexJobs {
  constructor(private readonly parts: ReindexJobsParts) {}

  /**
   * Starts a job that reindexes a knowledge base. Ingests that have not written their chunks yet are repeated with the new
   * settings.
   *
   * @throws knowledge_base_not_found, chunking_service_not_found, embedding_service_not_found, invalid_chunker
   * @throws forbidden         the caller may see only some rows; or it lacks `manage:access` to choose the receiver of documents
   * @throws conflict          the knowledge base is being imported, or a job is already reindexing it
   * @throws validation_error  the embedding service is the built-in one
   */
  async start(
    baseKey: BaseKey,
    body: ReindexRequest,
    caller: Pick<Caller, 'auth' | 'rowAccess'>,
  ): Promise<Job> {
    const { rows, clock, bases, chunking } = this.parts
    const { workspaceId, knowledgeBaseId } = baseKey
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      const context = await bases.openContext(workspaceId, knowledgeBaseId)
      const { base, revision, store } = context
      await this.requireFullAccess(base, caller)
      requireImported(base)
      requireListing(store)
      const chunkingServiceId = body.chunkingServiceId ?? base.chunkingServiceId
      createChunker(await chunking.get(workspaceId, chunkingServiceId))
      const embeddingServiceId = await this.newEmbeddingService(context, body)
      const destination =
        embeddingServiceId === null ? [] : [await authorizeStoredDestination(rows, workspaceId, caller)]
      await this.requireIdle(base)
      const reindex = { embeddingServiceId, checkedThrough: 0, rechunked: 0, unchanged: 0, kept: 0 }
      const job = pendingJob(
        { workspaceId, knowledgeBaseId, documentId: null, kind: 'reindex', reindex },
        clock,
      )
      const updatedAt = timestamp(clock)
      const row = { ...base, chunkingServiceId, updatedAt, reindexJobId: job.jobId }
      const outcome = await rows.atomic([
        { op: 'replace', table: tables.knowledgeBases, row, ...revision },
        { op: 'require', table: tables.chunkingServices, key: [workspaceId, chunkingServiceId] },
        { op: 'insert', table: tables.jobs, row: job },
        ...destination,
      ])
      if (!outcome.ok) continue
      this.parts.onEnqueued()
      return job
    }
    throw concurrentChange()
  }

  /** Returns the ID of the embedding service to change to; null to keep the current one. */
  private async newEmbeddingService(
    context: BaseContext,
    { embeddingServiceId }: ReindexRequest,
  ): Promise<string | null> {
    const { base, store, collection } = context
    if (embeddingServiceId === undefined || embeddingServiceId === base.embeddingServiceId) return null
    const { provider } = await this.parts.embedding.get(base.workspaceId, embeddingServiceId)
    if (provider === builtInProvider)
      throw new WbError(
        'validation_error',
        'embeddingServiceId: a knowledge base cannot change to the built-in embedder',
        { hint: 'Create a knowledge base with the built-in embedder, and ingest the documents into it.' },
      )
    requireVectors(collection)
    requireSpaces(store)
    return embeddingServiceId
  }

  /** @throws conflict  a job is already reindexing the knowledge base */
  private async requireIdle({ workspaceId, reindexJobId, name }: KnowledgeBaseRow): Promise<void> {
    if (reindexJobId === undefined) return
    const job = await this.parts.rows.get(tables.jobs, [workspaceId, reindexJobId])
    if (!job || job.row.endedAt !== null) return
    throw new WbError('conflict', `job '${reindexJobId}' is already reindexing '${name}'`, {
      hint: 'Wait for this job, or cancel it.',
    })
  }

  /**
   * Returns the last job that reindexed a knowledge base.
   *
   * @throws knowledge_base_not_found
   * @throws forbidden  the caller may see only some rows, which the figures would reveal
   */
  async show(
    { workspaceId, knowledgeBaseId }: BaseKey,
    caller: Pick<Caller, 'rowAccess'>,
  ): Promise<Reindexing> {
    const base: KnowledgeBaseRow = await this.parts.bases.get(workspaceId, knowledgeBaseId)
    await this.requireFullAccess(base, caller)
    const { reindexJobId } = base
    const stored = reindexJobId && (await this.parts.rows.get(tables.jobs, [workspaceId, reindexJobId]))
    if (!stored) return { job: null, documents: null }
    return { job: stored.row, documents: stored.row.reindex ?? null }
  }

  private async requireFullAccess(base: KnowledgeBaseRow, caller: Pick<Caller, 'rowAccess'>): Promise<void> {
    const access = await caller.rowAccess(base.workspaceId)
    requireFullVisibility(access.visibility(base, { action: 'list' }))
  }
}
