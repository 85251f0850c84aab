import { authorize } from '../access/authorize.ts'
import type { Caller } from '../access/caller.ts'
import { requireWorkspace, workspaceNotFound } from '../access/require-workspace.ts'
import { type Clock, timestamp } from '../base/clock.ts'
import { newId, randomNameHex } from '../base/id.ts'
import { needs } from '../contract/access.ts'
import { WbError } from '../contract/errors.ts'
import type { KnowledgeBase, KnowledgeBaseCreate } from '../contract/knowledge.ts'
import { builtInProvider } from '../contract/providers.ts'
import type { ChunkingService, EmbeddingService } from '../contract/services.ts'
import type { Workspace } from '../contract/workspaces.ts'
import { lsaDimension } from '../models/lsa.ts'
import type { Collection, CollectionKey, ContentStore } from '../storage/content.ts'
import type { RowStore, Write, WriteOutcome } from '../storage/rows.ts'
import { requireFittedSpaces } from '../storage/store-features.ts'
import { type KnowledgeBaseRow, tables } from '../storage/tables.ts'
import { type ContentStores, requireStore } from '../workspaces/content-stores.ts'
import { builtInModel } from '../workspaces/seeds.ts'
import { rerankingKind, serviceNotFound } from '../workspaces/service-kinds.ts'
import type { Services } from '../workspaces/services.ts'

interface KnowledgeBaseCreatorParts {
  readonly rows: RowStore
  readonly clock: Clock
  readonly stores: ContentStores
  readonly chunking: Services<ChunkingService>
  readonly embedding: Services<EmbeddingService>
}

type LexicalConfig = KnowledgeBase['lexical']

/** Maximum length of the name of a collection, which is that of the name of a knowledge base. */
const collectionNameCharsMax = 48

const lexicalOff = { enabled: false, analyzer: null, options: {} }

/**
 * Creates knowledge bases. If a request has several errors, throws the first of them in the order of
 * docs/http.md#creating-a-knowledge-base.
 */
export class KnowledgeBaseCreator {
  constructor(private readonly parts: KnowledgeBaseCreatorParts) {}

  /**
   * Creates a knowledge base with a new collection.
   *
   * @param internalFields  fields that a client cannot set
   * @throws the codes for a new collection in docs/http.md#creating-a-knowledge-base
   */
  async provision(
    workspaceId: string,
    body: KnowledgeBaseCreate,
    internalFields: Partial<KnowledgeBaseRow> = {},
  ): Promise<KnowledgeBaseRow> {
    if (body.vectorCollection)
      throw new WbError(
        'vector_collection_not_allowed',
        'vectorCollection: is not allowed, because a new knowledge base creates a new collection',
        { hint: 'Omit vectorCollection, or send attach=true to use an existing collection.' },
      )
    const { workspace, store } = await this.open(workspaceId)
    const named = { workspaceId, name: body.name }
    const existing = await store.collection(named)
    // Check this after reading the collection. Another request could have created both in the meantime.
    if (await this.isNameUsed(named)) throw nameTaken(body.name)
    const isKeptByRenamed = await this.isCollectionUsed(named)
    if (existing && !isKeptByRenamed)
      throw new WbError('collection_name_taken', `a collection named '${body.name}' exists`)
    const embedding = await this.findService(this.parts.embedding, workspaceId, body.embeddingServiceId)
    const key = isKeptByRenamed ? { workspaceId, name: spareCollectionName(body.name) } : named
    const composed = await this.composeBase(workspace, body, key.name, embedding)
    const base = { ...composed, ...internalFields }
    requireFittable(store, embedding)
    const rows = insertWrites(base)
    const { embeddingDimension: dimension, distanceMetric: metric, provider } = embedding
    const [lexical, fitted] = [store.lexical !== undefined, provider === builtInProvider]
    const { language } = base
    const createCollection = {
      op: 'createCollection' as const,
      ...key,
      dimension,
      metric,
      lexical,
      language,
      fitted,
    }
    const outcome = await store.write([createCollection], rows)
    if (!outcome.ok) throw this.creationError(outcome, base)
    return base
  }

  /**
   * Creates a knowledge base for an existing collection that no other knowledge base uses.
   *
   * @throws the codes for `attach: true` in docs/http.md#creating-a-knowledge-base
   */
  async attach(
    workspaceId: string,
    body: KnowledgeBaseCreate,
    caller: Pick<Caller, 'auth'>,
  ): Promise<KnowledgeBase> {
    if (!body.vectorCollection)
      throw new WbError(
        'vector_collection_required',
        'vectorCollection: is required with attach=true; send the name of the collection to attach',
      )
    if (body.name !== body.vectorCollection)
      throw new WbError('kb_name_must_match_collection', `name: must be '${body.vectorCollection}'`)
    const { workspace, store } = await this.open(workspaceId)
    // An earlier knowledge base may have had a policy that hid rows of the collection. The new one has none.
    if (workspace.rlacEnabled) authorize({ rule: needs('manage:access'), workspaceId }, caller)
    const embedding = await this.findService(this.parts.embedding, workspaceId, body.embeddingServiceId)
    const collection = await store.collection({ workspaceId, name: body.name })
    if (!collection) throw new WbError('collection_not_found', `collection '${body.name}' not found`)
    requireMatchingService(collection, embedding)
    const base = await this.composeBase(workspace, body, body.name, embedding)
    const outcome = await this.parts.rows.atomic(insertWrites(base))
    if (!outcome.ok) throw this.creationError(outcome, base)
    return base
  }

  /** @throws workspace_not_found, driver_unavailable */
  private async open(workspaceId: string): Promise<{ workspace: Workspace; store: ContentStore }> {
    const workspace = await requireWorkspace(this.parts.rows, workspaceId)
    return { workspace, store: requireStore(this.parts.stores, workspace) }
  }

  /** @throws chunking_service_not_found, reranking_service_not_found, conflict */
  private async composeBase(
    { workspaceId, kind }: Workspace,
    body: KnowledgeBaseCreate,
    vectorCollection: string,
    { embeddingServiceId }: EmbeddingService,
  ): Promise<KnowledgeBase> {
    const { attach, lexical, vectorCollection: _, knowledgeBaseId = newId(), ...fields } = body
    const { chunkingServiceId } = await this.findService(
      this.parts.chunking,
      workspaceId,
      body.chunkingServiceId,
    )
    if (body.rerankingServiceId) await requireReranking(this.parts.rows, workspaceId, body.rerankingServiceId)
    if (await this.parts.rows.get(tables.knowledgeBases, [workspaceId, knowledgeBaseId]))
      throw knowledgeBaseIdTaken(knowledgeBaseId)
    const now = timestamp(this.parts.clock)
    const defaultLexical: LexicalConfig = { ...lexicalOff, enabled: kind === 'local' }
    return {
      ...fields,
      workspaceId,
      knowledgeBaseId,
      embeddingServiceId,
      chunkingServiceId,
      vectorCollection,
      owned: !attach,
      lexical: lexical ?? defaultLexical,
      policyDsl: null,
      policyEnabled: false,
      createdAt: now,
      updatedAt: now,
    }
  }

  private async findService<Row extends ChunkingService | EmbeddingService>(
    services: Services<Row>,
    workspaceId: string,
    id: string | undefined,
  ): Promise<Row> {
    const service = id === undefined ? await services.first(workspaceId) : await services.get(workspaceId, id)
    if (!service) throw services.notFound('default')
    return service
  }

  /** Returns true if a knowledge base has the name. */
  private async isNameUsed({ workspaceId, name }: CollectionKey): Promise<boolean> {
    return (await this.parts.rows.count(tables.knowledgeBases, 'byName', [workspaceId, name])) > 0
  }

  /** Returns true if a knowledge base uses the collection. */
  async isCollectionUsed({ workspaceId, name }: CollectionKey): Promise<boolean> {
    return (await this.parts.rows.count(tables.knowledgeBases, 'byCollection', [workspaceId, name])) > 0
  }

  /** Returns the error for a write that failed because of a concurrent change after all checks had passed. */
  private creationError(outcome: WriteOutcome & { ok: false }, base: KnowledgeBase): WbError {
    const { workspaceId, name } = base
    // In the order of `insertWrites`.
    const missingError = [
      () => workspaceNotFound(workspaceId),
      () => this.parts.embedding.notFound(base.embeddingServiceId),
      () => this.parts.chunking.notFound(base.chunkingServiceId),
      () => serviceNotFound(rerankingKind, base.rerankingServiceId ?? ''),
    ][outcome.reason === 'absent' ? outcome.at : -1]
    if (missingError) return missingError()
    if (base.owned && (outcome.reason === 'present' || outcome.reason === 'taken')) return nameTaken(name)
    if (outcome.reason === 'exists' && outcome.at < insertWrites(base).length)
      return knowledgeBaseIdTaken(base.knowledgeBaseId)
    return new WbError(
      'collection_name_taken',
      `another knowledge base has the name '${name}' or uses the collection`,
    )
  }
}

/** Returns the writes that insert a knowledge base. They fail if its workspace or a service was deleted. */
function insertWrites(base: KnowledgeBase): Write[] {
  const { workspaceId, embeddingServiceId, chunkingServiceId, rerankingServiceId } = base
  const requirements: Write[] = [
    { op: 'require', table: tables.workspaces, key: [workspaceId] },
    { op: 'require', table: tables.embeddingServices, key: [workspaceId, embeddingServiceId] },
    { op: 'require', table: tables.chunkingServices, key: [workspaceId, chunkingServiceId] },
  ]
  if (rerankingServiceId)
    requirements.push({
      op: 'require',
      table: tables.rerankingServices,
      key: [workspaceId, rerankingServiceId],
    })
  return [
    ...requirements,
    requireUnusedName(workspaceId, base.name),
    { op: 'insert', table: tables.knowledgeBases, row: base },
  ]
}

/** Returns the write that fails with `present` if a knowledge base of the workspace has the name. */
export function requireUnusedName(workspaceId: string, name: string): Write {
  return { op: 'requireNone', table: tables.knowledgeBases, index: 'byName', prefix: [workspaceId, name] }
}

/** Returns the name of a collection for a knowledge base whose name is that of the collection of a renamed one. */
function spareCollectionName(name: string): string {
  return `${name.slice(0, collectionNameCharsMax - 9)}_${randomNameHex(4)}`
}

/**
 * Returns the service that creates the vectors of a collection: the built-in embedder, or the service of the store;
 * null if clients supply the vectors.
 */
export function vectorServiceOf({ fitted, vectorService }: Collection) {
  return fitted ? { provider: builtInProvider, modelName: builtInModel } : (vectorService ?? null)
}

/**
 * Checks that an embedding service matches an existing collection.
 *
 * @throws vector_collection_required   the collection has no vectors
 * @throws dimension_mismatch           the dimensions of the collection and the service differ
 * @throws vectorize_service_mismatch   a different service created the vectors of the collection
 */
function requireMatchingService(collection: Collection, embedding: EmbeddingService): void {
  const { name, dimension, fitted } = collection
  if (dimension === 0)
    throw new WbError('vector_collection_required', `vectorCollection: '${name}' has no vectors`)
  if (dimension !== embedding.embeddingDimension)
    throw new WbError(
      'dimension_mismatch',
      `collection '${name}' has ${dimension} dimensions, but the embedding service has ${embedding.embeddingDimension}`,
    )
  const storeService = collection.vectorService
  const isDifferent =
    storeService &&
    (storeService.provider !== embedding.provider || storeService.modelName !== embedding.modelName)
  if (isDifferent || fitted !== (embedding.provider === builtInProvider))
    throw new WbError(
      'vectorize_service_mismatch',
      `embeddingServiceId: the vectors of collection '${name}' were created by a different embedding service`,
    )
}

/**
 * If the service uses the built-in embedder, checks that the store supports it.
 *
 * @throws driver_unavailable  the store does not support vector spaces that the runtime fits
 * @throws dimension_mismatch  the dimension of the service is not that of the built-in embedder
 */
function requireFittable(store: ContentStore, { provider, embeddingDimension }: EmbeddingService): void {
  if (provider !== builtInProvider) return
  requireFittedSpaces(store)
  if (embeddingDimension !== lsaDimension)
    throw new WbError(
      'dimension_mismatch',
      `the built-in embedder has ${lsaDimension} dimensions, but the embedding service has ${embeddingDimension}`,
    )
}

/** @throws reranking_service_not_found */
async function requireReranking(rows: RowStore, workspaceId: string, id: string): Promise<void> {
  if (!(await rows.get(tables.rerankingServices, [workspaceId, id]))) throw serviceNotFound(rerankingKind, id)
}

export function nameTaken(name: string): WbError {
  return new WbError('kb_name_taken', `a knowledge base named '${name}' exists in this workspace`)
}

function knowledgeBaseIdTaken(knowledgeBaseId: string): WbError {
  return new WbError('conflict', `knowledge base with id '${knowledgeBaseId}' already exists`)
}
