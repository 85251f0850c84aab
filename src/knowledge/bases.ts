import { workspaceNotFound } from '../access/workspace.ts'
import { type Clock, timestamp } from '../base/clock.ts'
import { newId } from '../base/id.ts'
import { WbError } from '../contract/errors.ts'
import type {
  Embedder,
  KnowledgeBase,
  KnowledgeBaseCreate,
  KnowledgeBasePatch,
} from '../contract/knowledge.ts'
import type { PageQuery } from '../contract/page.ts'
import type { ChunkingService, EmbeddingService } from '../contract/services.ts'
import type { Workspace } from '../contract/workspaces.ts'
import { lsaDimension } from '../models/lsa.ts'
import { changeRow } from '../storage/change.ts'
import type { Collection, CollectionKey, ContentStore } from '../storage/content.ts'
import type { Page, Pager } from '../storage/cursor.ts'
import { fittedOf } from '../storage/missing.ts'
import type { Outcome, RowStore, Write } from '../storage/rows.ts'
import { tables } from '../storage/tables.ts'
import { type ContentStores, storeOf } from '../workspaces/kinds.ts'
import { builtInProvider } from '../workspaces/seeds.ts'
import type { Services } from '../workspaces/services.ts'
import { collectionGone } from './guards.ts'

/** A knowledge base with all that work on its content needs. */
export interface BaseContext {
  readonly base: KnowledgeBase
  readonly store: ContentStore
  readonly key: CollectionKey
  readonly collection: Collection
  readonly embedding: EmbeddingService
  /** The vectors stand in a space that the runtime fits itself. */
  readonly fitted: boolean
}

interface Parts {
  readonly rows: RowStore
  readonly pager: Pager
  readonly clock: Clock
  readonly stores: ContentStores
  readonly chunking: Services<ChunkingService>
  readonly embedding: Services<EmbeddingService>
  /** Whether a fit of the collection is under way here. */
  readonly fitting: (key: CollectionKey) => boolean
}

const lexicalOff = { enabled: false, analyzer: null, options: {} }

/** Knowledge bases and the collections behind them. */
export class KnowledgeBases {
  constructor(private readonly parts: Parts) {}

  /** @throws workspace_not_found */
  async list(workspaceId: string, query: PageQuery): Promise<Page<KnowledgeBase>> {
    await this.workspace(workspaceId)
    return this.parts.pager.page(
      tables.knowledgeBases,
      { index: 'byWorkspace', prefix: [workspaceId] },
      query,
    )
  }

  /**
   * Create a knowledge base with a collection of its own, or on one that exists.
   *
   * @throws the codes of contract 5.3, in its order
   */
  async create(workspaceId: string, body: KnowledgeBaseCreate): Promise<KnowledgeBase> {
    return body.attach ? this.attach(workspaceId, body) : this.provision(workspaceId, body)
  }

  private async provision(workspaceId: string, body: KnowledgeBaseCreate): Promise<KnowledgeBase> {
    if (body.vectorCollection)
      throw new WbError(
        'vector_collection_not_allowed',
        'vectorCollection: a new knowledge base makes a collection of its own',
        { hint: 'Leave vectorCollection out, or send attach=true to adopt a collection.' },
      )
    const workspace = await this.workspace(workspaceId)
    if (await this.isNameTaken(workspaceId, body.name)) throw nameTaken(body.name)
    const store = storeOf(this.parts.stores, workspace)
    const key = { workspaceId, name: body.name }
    if (await store.collection(key))
      throw new WbError('collection_name_taken', `a collection named '${body.name}' exists`)
    const { base, embedding, checks } = await this.compose(workspace, body)
    requireFittable(store, embedding)
    const outcome = await store.write(
      [
        {
          op: 'createCollection',
          ...key,
          dimension: embedding.embeddingDimension,
          metric: embedding.distanceMetric,
          lexical: store.lexical !== undefined,
          fitted: embedding.provider === builtInProvider,
        },
      ],
      [...checks, { op: 'insert', table: tables.knowledgeBases, row: base }],
    )
    if (!outcome.ok) throw this.refusal(outcome, checks, base)
    return base
  }

  private async attach(workspaceId: string, body: KnowledgeBaseCreate): Promise<KnowledgeBase> {
    if (!body.vectorCollection)
      throw new WbError('vector_collection_required', 'vectorCollection: name the collection to attach')
    if (body.name !== body.vectorCollection)
      throw new WbError('kb_name_must_match_collection', `name: must be '${body.vectorCollection}'`)
    const workspace = await this.workspace(workspaceId)
    const store = storeOf(this.parts.stores, workspace)
    if (body.embeddingServiceId) await this.parts.embedding.get(workspaceId, body.embeddingServiceId)
    const collection = await store.collection({ workspaceId, name: body.name })
    if (!collection) throw new WbError('collection_not_found', `collection '${body.name}' not found`)
    const { base, embedding, checks } = await this.compose(workspace, body)
    if (collection.dimension !== embedding.embeddingDimension)
      throw new WbError(
        'dimension_mismatch',
        `collection '${body.name}' has ${collection.dimension} dimensions, the embedding service ${embedding.embeddingDimension}`,
      )
    if (collection.fitted !== (embedding.provider === builtInProvider))
      throw new WbError(
        'vectorize_service_mismatch',
        `embeddingServiceId: the vectors of collection '${body.name}' are of another embedder`,
      )
    const outcome = await this.parts.rows.atomic([
      ...checks,
      { op: 'insert', table: tables.knowledgeBases, row: base },
    ])
    if (!outcome.ok) throw this.refusal(outcome, checks, base)
    return base
  }

  /** The row to insert, and the checks that keep what it binds from vanishing meanwhile. */
  private async compose(workspace: Workspace, body: KnowledgeBaseCreate) {
    const { workspaceId } = workspace
    const { attach, lexical, vectorCollection: _, ...fields } = body
    const embedding = await this.bound(this.parts.embedding, workspaceId, body.embeddingServiceId)
    const chunking = await this.bound(this.parts.chunking, workspaceId, body.chunkingServiceId)
    if (body.rerankingServiceId) await this.requireReranking(workspaceId, body.rerankingServiceId)
    const now = timestamp(this.parts.clock)
    const base: KnowledgeBase = {
      ...fields,
      workspaceId,
      knowledgeBaseId: body.knowledgeBaseId ?? newId(),
      embeddingServiceId: embedding.embeddingServiceId,
      chunkingServiceId: chunking.chunkingServiceId,
      vectorCollection: body.name,
      owned: !attach,
      lexical: lexical ?? { ...lexicalOff, enabled: workspace.kind === 'local' },
      policyDsl: null,
      policyEnabled: false,
      createdAt: now,
      updatedAt: now,
    }
    const checks: Write[] = [
      { op: 'require', table: tables.workspaces, key: [workspaceId] },
      { op: 'require', table: tables.embeddingServices, key: [workspaceId, base.embeddingServiceId] },
      { op: 'require', table: tables.chunkingServices, key: [workspaceId, base.chunkingServiceId] },
    ]
    return { base, embedding, checks }
  }

  private async bound<Row extends ChunkingService | EmbeddingService>(
    services: Services<Row>,
    workspaceId: string,
    id: string | undefined,
  ): Promise<Row> {
    const service = id === undefined ? await services.first(workspaceId) : await services.get(workspaceId, id)
    if (!service) throw services.notFound('default')
    return service
  }

  private refusal(outcome: Outcome & { ok: false }, checks: readonly Write[], base: KnowledgeBase): WbError {
    if (outcome.at === 0) return workspaceNotFound(base.workspaceId)
    if (outcome.at === 1) return this.parts.embedding.notFound(base.embeddingServiceId)
    if (outcome.at === 2) return this.parts.chunking.notFound(base.chunkingServiceId)
    const isHeld = outcome.reason === 'taken' && !base.owned
    if (outcome.at > checks.length || isHeld)
      return new WbError('collection_name_taken', `a knowledge base holds the collection '${base.name}'`)
    return outcome.reason === 'taken'
      ? nameTaken(base.name)
      : new WbError('conflict', `knowledge base with id '${base.knowledgeBaseId}' already exists`)
  }

  /** @throws workspace_not_found, knowledge_base_not_found */
  async get(workspaceId: string, knowledgeBaseId: string): Promise<KnowledgeBase> {
    const stored = await this.parts.rows.get(tables.knowledgeBases, [workspaceId, knowledgeBaseId])
    if (stored) return stored.row
    await this.workspace(workspaceId)
    throw baseNotFound(knowledgeBaseId)
  }

  /** The record and, for the built-in provider, where its embedder stands. */
  async show(workspaceId: string, knowledgeBaseId: string): Promise<KnowledgeBase & { embedder?: Embedder }> {
    const base = await this.get(workspaceId, knowledgeBaseId)
    const { embeddingServiceId } = base
    const embedding = await this.parts.rows.get(tables.embeddingServices, [workspaceId, embeddingServiceId])
    if (embedding?.row.provider !== builtInProvider) return base
    const { key, collection } = await this.context(workspaceId, knowledgeBaseId)
    const state = this.parts.fitting(key) ? 'fitting' : collection.generation === 0 ? 'placeholder' : 'ready'
    return {
      ...base,
      embedder: {
        version: collection.generation === 0 ? 'placeholder' : `lsa-${collection.generation}`,
        state,
        fittedChunks: collection.fittedRecords,
        chunks: collection.records,
      },
    }
  }

  /**
   * A knowledge base opened for work on its content.
   *
   * @throws knowledge_base_not_found, driver_unavailable
   * @throws collection_unavailable  the collection is gone
   */
  async context(workspaceId: string, knowledgeBaseId: string): Promise<BaseContext> {
    const [workspace, base] = await Promise.all([
      this.workspace(workspaceId),
      this.parts.rows.get(tables.knowledgeBases, [workspaceId, knowledgeBaseId]),
    ])
    if (!base) throw baseNotFound(knowledgeBaseId)
    const store = storeOf(this.parts.stores, workspace)
    const key = { workspaceId, name: base.row.vectorCollection ?? base.row.name }
    const [collection, embedding] = await Promise.all([
      store.collection(key),
      this.parts.embedding.get(workspaceId, base.row.embeddingServiceId),
    ])
    if (!collection) throw collectionGone(base.row)
    return {
      base: base.row,
      store,
      key,
      collection,
      embedding,
      fitted: embedding.provider === builtInProvider,
    }
  }

  /** @throws knowledge_base_not_found, reranking_service_not_found */
  async update(
    workspaceId: string,
    knowledgeBaseId: string,
    patch: KnowledgeBasePatch,
  ): Promise<KnowledgeBase> {
    await this.get(workspaceId, knowledgeBaseId)
    if (patch.rerankingServiceId) await this.requireReranking(workspaceId, patch.rerankingServiceId)
    const now = timestamp(this.parts.clock)
    const changed = await changeRow(
      this.parts.rows,
      tables.knowledgeBases,
      [workspaceId, knowledgeBaseId],
      row => ({
        ...row,
        ...patch,
        updatedAt: now,
      }),
    )
    if (!('row' in changed)) throw baseNotFound(knowledgeBaseId)
    return changed.row
  }

  /**
   * Delete a knowledge base with its documents; its collection goes too when it is its own.
   *
   * @throws knowledge_base_not_found, driver_unavailable
   */
  async delete(workspaceId: string, knowledgeBaseId: string): Promise<KnowledgeBase> {
    const base = await this.get(workspaceId, knowledgeBaseId)
    const store = storeOf(this.parts.stores, await this.workspace(workspaceId))
    const name = base.vectorCollection ?? base.name
    const prefix = [workspaceId, knowledgeBaseId]
    const outcome = await store.write(base.owned ? [{ op: 'dropCollection', workspaceId, name }] : [], [
      { op: 'delete', table: tables.knowledgeBases, key: prefix },
      { op: 'deleteAll', table: tables.documents, index: 'byKnowledgeBase', prefix },
    ])
    if (!outcome.ok) throw baseNotFound(knowledgeBaseId)
    return base
  }

  /** Purge step of a workspace: the collections that its knowledge bases made. */
  async purge(workspace: Workspace): Promise<void> {
    for (;;) {
      const [next] = await this.parts.rows.list(tables.knowledgeBases, {
        index: 'byWorkspace',
        prefix: [workspace.workspaceId],
        limit: 1,
      })
      if (!next) return
      await this.delete(workspace.workspaceId, next.row.knowledgeBaseId).catch(unlessGone)
    }
  }

  private async workspace(workspaceId: string): Promise<Workspace> {
    const stored = await this.parts.rows.get(tables.workspaces, [workspaceId])
    if (!stored) throw workspaceNotFound(workspaceId)
    return stored.row
  }

  private async isNameTaken(workspaceId: string, name: string): Promise<boolean> {
    return (await this.parts.rows.count(tables.knowledgeBases, 'byCollection', [workspaceId, name])) > 0
  }

  private async requireReranking(workspaceId: string, id: string): Promise<void> {
    if (!(await this.parts.rows.get(tables.rerankingServices, [workspaceId, id])))
      throw new WbError('reranking_service_not_found', `reranking service '${id}' not found`)
  }
}

function unlessGone(error: unknown): void {
  if (!(error instanceof WbError) || error.code !== 'knowledge_base_not_found') throw error
}

/**
 * Nothing to fit where another provider makes the vectors.
 *
 * @throws driver_unavailable  the store cannot keep a space that the runtime fits
 * @throws dimension_mismatch  the service says another dimension than such a space has
 */
function requireFittable(store: ContentStore, { provider, embeddingDimension }: EmbeddingService): void {
  if (provider !== builtInProvider) return
  fittedOf(store)
  if (embeddingDimension !== lsaDimension)
    throw new WbError(
      'dimension_mismatch',
      `the built-in embedder has ${lsaDimension} dimensions, the embedding service ${embeddingDimension}`,
    )
}

function baseNotFound(knowledgeBaseId: string): WbError {
  return new WbError('knowledge_base_not_found', `knowledge base '${knowledgeBaseId}' not found`)
}

function nameTaken(name: string): WbError {
  return new WbError('kb_name_taken', `a knowledge base named '${name}' exists in this workspace`)
}
