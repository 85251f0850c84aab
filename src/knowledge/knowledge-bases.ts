import { authorize } from '../access/authorize.ts'
import type { Caller } from '../access/caller.ts'
import { requirePolicy } from '../access/policy/check.ts'
import { requireWorkspace } from '../access/require-workspace.ts'
import { unchangedAccess } from '../access/unchanged-access.ts'
import { deleteKnowledgeBaseVersions } from '../access/versions/version-removal.ts'
import { knowledgeBaseVersion } from '../access/versions/version-write.ts'
import { type Clock, timestamp } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import { needs } from '../contract/access.ts'
import { WbError } from '../contract/errors.ts'
import type {
  AdoptableCollection,
  EmbedderState,
  KnowledgeBase,
  KnowledgeBaseCreate,
  KnowledgeBasePatch,
  KnowledgeBaseStats,
  ListedKnowledgeBase,
  SentenceState,
} from '../contract/knowledge.ts'
import type { PageQuery } from '../contract/page.ts'
import { builtInProvider } from '../contract/providers.ts'
import type { ChunkingService, EmbeddingService } from '../contract/services.ts'
import type { Workspace } from '../contract/workspaces.ts'
import { changeRow } from '../storage/change-row.ts'
import type {
  Collection,
  CollectionBytes,
  CollectionKey,
  CollectionStats,
  ContentStore,
  ContentWrite,
  LexicalIndexState,
} from '../storage/content.ts'
import type { Pager, RowPage } from '../storage/cursor.ts'
import { damagedStore } from '../storage/damaged-store.ts'
import { type RowRevision, type RowStore, revisionOf, type Stored, type Write } from '../storage/rows.ts'
import { type KnowledgeBaseRow, tables } from '../storage/tables.ts'
import type { Visibility } from '../storage/visibility.ts'
import { type ContentStores, requireStore } from '../workspaces/content-stores.ts'
import { rerankingKind, serviceNotFound } from '../workspaces/service-kinds.ts'
import type { Services } from '../workspaces/services.ts'
import type { BaseKey } from './document-key.ts'
import type { RefitAfter } from './fitting.ts'
import { baseCollectionMissing, undefinedIfDeleted } from './guards.ts'
import {
  KnowledgeBaseCreator,
  nameTaken,
  requireUnusedName,
  vectorServiceOf,
} from './knowledge-base-creator.ts'
import { type SentenceProgress, sentenceSpace } from './sentence-space.ts'

/** Maximum number of attempts to delete a knowledge base. An attempt fails if it was changed in the meantime. */
const deleteAttemptsMax = 8

/** A knowledge base, with everything needed to work on its content. */
export interface BaseContext {
  readonly base: KnowledgeBaseRow
  /** Revision of the knowledge base, which changes when it is reindexed. */
  readonly revision: RowRevision
  readonly store: ContentStore
  readonly key: CollectionKey
  readonly collection: Collection
  readonly embedding: EmbeddingService
  /** True if the runtime fits the vector space. */
  readonly isFittedByRuntime: boolean
}

export interface KnowledgeBasesParts {
  readonly rows: RowStore
  readonly pager: Pager
  readonly clock: Clock
  readonly log: Log
  readonly stores: ContentStores
  readonly chunking: Services<ChunkingService>
  readonly embedding: Services<EmbeddingService>
  /** Returns true while this process is fitting the vector space of a collection. */
  readonly isFitting: (key: CollectionKey) => boolean
  readonly refitAfter: RefitAfter
  /** Deletes the recorded searches of a knowledge base. */
  readonly clearQueryLog: (key: BaseKey) => Promise<void>
  /** Called when a knowledge base is to get sentence vectors. */
  readonly onSemanticEnabled: (key: CollectionKey) => void
  /** Returns how many records have a sentence vector; undefined if the collection has none. */
  readonly sentenceProgress: (key: CollectionKey) => Promise<SentenceProgress | undefined>
}

/** Creates, reads, changes and deletes knowledge bases, with the collections behind them. */
export class KnowledgeBases {
  readonly #creator: KnowledgeBaseCreator

  constructor(private readonly parts: KnowledgeBasesParts) {
    this.#creator = new KnowledgeBaseCreator(parts)
  }

  /** @throws workspace_not_found, invalid_cursor */
  async list(workspaceId: string, query: PageQuery): Promise<RowPage<KnowledgeBaseRow>> {
    const { rows, pager } = this.parts
    const list = { index: 'byWorkspace', prefix: [workspaceId] }
    // Start reading before the check, to save a round trip to the store.
    const page = pager.page(tables.knowledgeBases, list, query)
    page.catch(() => {})
    await requireWorkspace(rows, workspaceId)
    return page
  }

  /**
   * Like {@link list}, with the size of each knowledge base and the progress of its sentence vectors, if the caller may see
   * all of its rows.
   */
  async listWithFigures(
    workspaceId: string,
    query: PageQuery,
    caller: Pick<Caller, 'rowAccess'>,
  ): Promise<RowPage<ListedKnowledgeBase>> {
    const { rows, stores } = this.parts
    const page = await this.list(workspaceId, query)
    const store = stores[(await requireWorkspace(rows, workspaceId)).kind]
    if (!store) return page
    const access = await caller.rowAccess(workspaceId)
    const visible = page.items.filter(base => access.seesAll(base))
    const [counts, sizes, states] = await Promise.all([
      Promise.all(visible.map(base => this.#countDocuments(base))),
      store.storedBytes(visible.map(collectionKeyOf)),
      Promise.all(visible.map(base => this.#sentenceState(base))),
    ])
    const items = page.items.map(base => {
      const at = visible.indexOf(base)
      const [bytes, sentences] = [sizes[at], states[at]]
      const size = bytes && { documents: counts[at]!, bytes: totalBytes(bytes) }
      return { ...base, ...(size && { size }), ...(sentences && { sentences }) }
    })
    return { ...page, items }
  }

  #countDocuments({ workspaceId, knowledgeBaseId }: BaseKey): Promise<number> {
    return this.parts.rows.count(tables.documents, 'byKnowledgeBase', [workspaceId, knowledgeBaseId])
  }

  /** Returns those of the given knowledge bases that exist, in order of creation. */
  async listExisting(workspaceId: string, knowledgeBaseIds: readonly string[]): Promise<KnowledgeBaseRow[]> {
    const { rows } = this.parts
    const stored = await Promise.all(
      knowledgeBaseIds.map(id => rows.get(tables.knowledgeBases, [workspaceId, id])),
    )
    return stored
      .flatMap(base => base ?? [])
      .sort((a, b) => a.ordinal - b.ordinal)
      .map(({ row }) => row)
  }

  /**
   * Creates a knowledge base. Creates its collection, too, or attaches the knowledge base to an existing one.
   *
   * @throws the first code in docs/http.md#creating-a-knowledge-base that applies
   */
  async create(
    workspaceId: string,
    body: KnowledgeBaseCreate,
    caller: Pick<Caller, 'auth'>,
  ): Promise<KnowledgeBase> {
    return body.attach
      ? this.#creator.attach(workspaceId, body, caller)
      : this.#creator.provision(workspaceId, body)
  }

  /** Creates a knowledge base with a new collection, see {@link KnowledgeBaseCreator.provision}. */
  provision(
    workspaceId: string,
    body: KnowledgeBaseCreate,
    further: Partial<KnowledgeBaseRow>,
  ): Promise<KnowledgeBaseRow> {
    return this.#creator.provision(workspaceId, body, further)
  }

  /** @throws workspace_not_found, knowledge_base_not_found */
  async get(workspaceId: string, knowledgeBaseId: string): Promise<KnowledgeBase> {
    return (await this.#getStored(workspaceId, knowledgeBaseId)).row
  }

  async #getStored(workspaceId: string, knowledgeBaseId: string): Promise<Stored<KnowledgeBase>> {
    const stored = await this.parts.rows.get(tables.knowledgeBases, [workspaceId, knowledgeBaseId])
    if (stored) return stored
    await requireWorkspace(this.parts.rows, workspaceId)
    throw baseNotFound(knowledgeBaseId)
  }

  /**
   * Returns a knowledge base, with the progress of its sentence vectors, and with the state of its embedder if it uses the
   * built-in provider. Omits both for a caller who may not see all rows, because their figures depend on all of them.
   */
  async show(
    { workspaceId, knowledgeBaseId }: BaseKey,
    caller: Pick<Caller, 'rowAccess'>,
  ): Promise<KnowledgeBase & { embedder?: EmbedderState; sentences?: SentenceState }> {
    const base = await this.get(workspaceId, knowledgeBaseId)
    if (!(await caller.rowAccess(workspaceId)).seesAll(base)) return base
    const [embedder, sentences] = await Promise.all([this.#embedderState(base), this.#sentenceState(base)])
    return { ...base, ...(embedder && { embedder }), ...(sentences && { sentences }) }
  }

  async #sentenceState(base: KnowledgeBase): Promise<SentenceState | undefined> {
    const progress = await this.parts.sentenceProgress(collectionKeyOf(base))
    if (!progress) return undefined
    const { records: chunks, embedded: embeddedChunks } = progress
    return { state: embeddedChunks < chunks ? 'embedding' : 'ready', embeddedChunks, chunks }
  }

  async #embedderState({
    workspaceId,
    knowledgeBaseId,
    embeddingServiceId,
  }: KnowledgeBase): Promise<EmbedderState | undefined> {
    const embedding = await this.parts.rows.get(tables.embeddingServices, [workspaceId, embeddingServiceId])
    if (embedding?.row.provider !== builtInProvider) return undefined
    const { key, collection } = await this.openContext(workspaceId, knowledgeBaseId)
    const state = this.parts.isFitting(key)
      ? 'fitting'
      : collection.generation === 0
        ? 'placeholder'
        : 'ready'
    return {
      version: collection.generation === 0 ? 'placeholder' : `lsa-${collection.generation}`,
      state,
      fittedChunks: collection.fittedRecords,
      chunks: collection.records,
    }
  }

  /**
   * Returns counts and sizes of a knowledge base.
   *
   * @throws forbidden  the caller may see only some rows, which the figures would reveal
   */
  async stats(
    { workspaceId, knowledgeBaseId }: BaseKey,
    caller: Pick<Caller, 'rowAccess'>,
  ): Promise<Omit<KnowledgeBaseStats, 'searches'>> {
    const context = await this.openContext(workspaceId, knowledgeBaseId)
    const access = await caller.rowAccess(workspaceId)
    requireFullVisibility(access.visibility(context.base, { action: 'list' }))
    const { base, store, key, collection } = context
    const [stats, documents] = await this.withDeletionCheck(base, () =>
      Promise.all([store.stats(key), this.#countDocuments(base)]),
    )
    return { workspaceId, knowledgeBaseId, documents, ...describeStats(stats, collection) }
  }

  /**
   * Returns a knowledge base with everything that is needed to read or change its content.
   *
   * @throws knowledge_base_not_found, driver_unavailable
   * @throws collection_unavailable  the collection is missing
   */
  async openContext(workspaceId: string, knowledgeBaseId: string): Promise<BaseContext> {
    const [workspace, base] = await Promise.all([
      requireWorkspace(this.parts.rows, workspaceId),
      this.parts.rows.get(tables.knowledgeBases, [workspaceId, knowledgeBaseId]),
    ])
    if (!base) throw baseNotFound(knowledgeBaseId)
    const store = requireStore(this.parts.stores, workspace)
    const key = collectionKeyOf(base.row)
    const [collection, embedding] = await Promise.all([
      store.collection(key),
      this.boundService(this.parts.embedding, base.row, base.row.embeddingServiceId),
    ])
    if (!collection) {
      const error = baseCollectionMissing(base.row)
      throw (await this.notFoundIfDeleted(base.row, error)) ?? error
    }
    return {
      base: base.row,
      revision: revisionOf(base),
      store,
      key,
      collection,
      embedding,
      isFittedByRuntime: embedding.provider === builtInProvider,
    }
  }

  /**
   * Returns a service that a knowledge base uses. A service cannot be deleted while a knowledge base uses it.
   *
   * @throws knowledge_base_not_found   the knowledge base was deleted in the meantime
   * @throws control_plane_unavailable  the store is damaged: the service is missing
   */
  async boundService<Row extends ChunkingService | EmbeddingService>(
    services: Pick<Services<Row>, 'get'>,
    { workspaceId, knowledgeBaseId, name }: KnowledgeBase,
    serviceId: string,
  ): Promise<Row> {
    try {
      return await services.get(workspaceId, serviceId)
    } catch (error) {
      if (!(error instanceof WbError) || error.status !== 404) throw error
      await this.get(workspaceId, knowledgeBaseId)
      throw damagedStore(`a service that knowledge base '${name}' uses`, error)
    }
  }

  /**
   * Runs work on a knowledge base. If the work fails because the knowledge base was deleted in the meantime, throws the
   * "not found" error instead.
   *
   * @throws workspace_not_found       the workspace was deleted
   * @throws knowledge_base_not_found  the knowledge base was deleted
   */
  async withDeletionCheck<T>(address: BaseKey, work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      throw (await this.notFoundIfDeleted(address, error)) ?? error
    }
  }

  /**
   * Returns the "not found" error if the given error occurred because the knowledge base was deleted; otherwise,
   * undefined.
   */
  async notFoundIfDeleted({ workspaceId, knowledgeBaseId }: BaseKey, error: unknown): Promise<unknown> {
    if (!(error instanceof WbError) || error.code !== 'collection_unavailable') return undefined
    return this.get(workspaceId, knowledgeBaseId).then(
      () => undefined,
      (notFound: unknown) => notFound,
    )
  }

  /**
   * Changes a knowledge base.
   *
   * @throws workspace_not_found, knowledge_base_not_found, reranking_service_not_found
   * @throws forbidden         the policy would change, and the caller does not have the scope to change it
   * @throws validation_error  the policy cannot be parsed
   */
  async update(
    workspaceId: string,
    knowledgeBaseId: string,
    patch: KnowledgeBasePatch,
    caller: Pick<Caller, 'checkChange' | 'recordChange'>,
  ): Promise<KnowledgeBase> {
    const base = await this.get(workspaceId, knowledgeBaseId)
    caller.checkChange(base, patch)
    if (typeof patch.policyDsl === 'string') requirePolicy('policyDsl', patch.policyDsl)
    const now = timestamp(this.parts.clock)
    const { rerankingServiceId: reranking } = patch
    const serviceChecks: Write[] = reranking
      ? [{ op: 'require', table: tables.rerankingServices, key: [workspaceId, reranking] }]
      : []
    const rows = await this.#rowsWithCollection(base, patch)
    const change = () =>
      changeRow(
        rows,
        tables.knowledgeBases,
        [workspaceId, knowledgeBaseId],
        row => {
          caller.checkChange(row, patch)
          return { ...row, ...patch, updatedAt: now }
        },
        (row, next) => [
          ...serviceChecks,
          ...knowledgeBaseVersion(row, next, now),
          ...caller.recordChange(row, next, { label: next.name }),
        ],
      )
    const { policyDsl, policyEnabled } = { ...base, ...patch }
    const isPolicyChanged = policyDsl !== base.policyDsl || policyEnabled !== base.policyEnabled
    const { rlacEnabled } = await requireWorkspace(this.parts.rows, workspaceId)
    const changed = await (rlacEnabled && isPolicyChanged
      ? this.parts.refitAfter([collectionKeyOf(base)], change)
      : change())
    if ('absent' in changed) throw baseNotFound(knowledgeBaseId)
    if ('failedCheck' in changed) throw serviceNotFound(rerankingKind, reranking ?? '')
    if (patch.semantic) this.parts.onSemanticEnabled(collectionKeyOf(base))
    return changed.row
  }

  /**
   * Changes the name of a knowledge base. Its collection keeps its name.
   *
   * @throws workspace_not_found, knowledge_base_not_found, kb_name_taken, conflict
   * @throws forbidden  it has a policy, and the caller lacks `manage:access`: files that others ingest under the name would be
   *                    subject to another policy
   */
  async rename(
    { workspaceId, knowledgeBaseId }: BaseKey,
    name: string,
    caller: Pick<Caller, 'auth' | 'record'>,
  ): Promise<KnowledgeBase> {
    const base = await this.get(workspaceId, knowledgeBaseId)
    const { rlacEnabled } = await requireWorkspace(this.parts.rows, workspaceId)
    const changed = await changeRow(
      this.parts.rows,
      tables.knowledgeBases,
      [workspaceId, knowledgeBaseId],
      row => {
        if (rlacEnabled && row.policyEnabled) authorize({ rule: needs('manage:access'), workspaceId }, caller)
        return { ...row, name, updatedAt: timestamp(this.parts.clock) }
      },
      row => [
        ...(row.name === name ? [] : [requireUnusedName(workspaceId, name)]),
        caller.record({ label: name, reason: `was named ${base.name}` }),
      ],
    )
    if ('absent' in changed) throw baseNotFound(knowledgeBaseId)
    if ('failedCheck' in changed) throw nameTaken(name)
    return changed.row
  }

  /** Returns a row store whose writes also change the collection, if the patch changes its language or deletes its vectors. */
  async #rowsWithCollection(
    base: KnowledgeBase,
    { language, semantic }: KnowledgeBasePatch,
  ): Promise<RowStore> {
    const { rows, stores } = this.parts
    const key = collectionKeyOf(base)
    const changes: ContentWrite[] = []
    if (language !== undefined && language !== base.language)
      changes.push({ op: 'setLanguage', ...key, language })
    if (semantic === false) changes.push({ op: 'dropSpace', ...key, space: sentenceSpace })
    const store = stores[(await requireWorkspace(rows, base.workspaceId)).kind]
    if (!store || changes.length === 0) return rows
    return { ...rows, atomic: writes => store.write(changes, writes) }
  }

  /**
   * Deletes a knowledge base and everything that refers to it, in one transaction. Drops the collection if it was
   * created with the knowledge base. If it was attached, deletes only the documents that were ingested through the
   * knowledge base.
   *
   * Recorded searches are deleted first, which can take seconds, so the access of the caller is checked again afterwards.
   *
   * @throws workspace_not_found, knowledge_base_not_found, driver_unavailable
   * @throws unauthorized, forbidden  the caller lost its access in the meantime
   * @throws forbidden                the caller may not see all rows, and lacks `manage:access`
   * @throws conflict                 the knowledge base, its workspace or the caller's principal kept changing
   */
  async delete(
    workspaceId: string,
    knowledgeBaseId: string,
    caller: Pick<Caller, 'auth' | 'reauthorize' | 'rowAccess'>,
  ): Promise<KnowledgeBase> {
    const { ordinal, row } = await this.#requireDeletable({ workspaceId, knowledgeBaseId }, caller)
    requireStore(this.parts.stores, await requireWorkspace(this.parts.rows, workspaceId))
    await this.#clearQueryLog(row)
    for (let attempt = 0; attempt < deleteAttemptsMax; attempt++) {
      const checks = await unchangedAccess(this.parts.rows, workspaceId, caller)
      await caller.reauthorize()
      const base = await this.#requireDeletable(row, caller)
      // Another knowledge base was created with the same ID.
      if (base.ordinal !== ordinal) throw baseNotFound(knowledgeBaseId)
      if (await this.#remove(base, checks)) return base.row
    }
    throw new WbError('conflict', `knowledge base '${row.name}' keeps changing; it was not deleted`, {
      hint: 'Retry the delete.',
    })
  }

  /**
   * Returns a knowledge base that a caller may delete.
   *
   * @throws workspace_not_found, knowledge_base_not_found
   * @throws forbidden  the caller may not see all rows, and lacks `manage:access`
   */
  async #requireDeletable(
    { workspaceId, knowledgeBaseId }: BaseKey,
    caller: Pick<Caller, 'auth' | 'rowAccess'>,
  ): Promise<Stored<KnowledgeBase>> {
    const base = await this.#getStored(workspaceId, knowledgeBaseId)
    const access = await caller.rowAccess(workspaceId)
    if (!access.seesAll(base.row)) authorize({ rule: needs('manage:access'), workspaceId }, caller)
    return base
  }

  /**
   * Deletes the recorded searches of a knowledge base that is to be deleted. There can be many, so they are deleted in small
   * transactions. {@link #remove} deletes the rest.
   */
  async #clearQueryLog({ workspaceId, knowledgeBaseId }: BaseKey): Promise<void> {
    await this.parts
      .clearQueryLog({ workspaceId, knowledgeBaseId })
      .catch(error =>
        this.parts.log.warn(
          { workspaceId, knowledgeBaseId, error },
          'recorded searches could not be deleted in small transactions',
        ),
      )
  }

  /**
   * Deletes a knowledge base if it is unchanged.
   *
   * @param checks  more conditions for the same transaction
   * @returns false if it was changed or deleted in the meantime, or a check failed
   */
  async #remove(stored: Stored<KnowledgeBase>, checks: readonly Write[] = []): Promise<boolean> {
    const base = stored.row
    const { workspaceId, knowledgeBaseId } = base
    const store = requireStore(this.parts.stores, await requireWorkspace(this.parts.rows, workspaceId))
    const key = collectionKeyOf(base)
    const change: ContentWrite = base.owned
      ? { op: 'dropCollection', ...key }
      : { op: 'deleteDocuments', ...key, knowledgeBaseId }
    const outcome = await store.write([change], [...checks, ...baseRemovalWrites(stored)])
    if (!outcome.ok) return false
    // The knowledge base has been deleted, so a failure is only logged. The versions that remain expire later.
    await deleteKnowledgeBaseVersions(this.parts.rows, base).catch(error =>
      this.parts.log.warn(
        { workspaceId, knowledgeBaseId, error },
        'the access versions of a deleted knowledge base were not deleted',
      ),
    )
    return true
  }

  /**
   * Deletes the knowledge bases of a workspace that is being deleted, and the collections created with them.
   *
   * @param authorize  called before each knowledge base
   */
  async purge(workspace: Workspace, authorize: () => Promise<void>): Promise<void> {
    for (;;) {
      await authorize()
      const [next] = await this.parts.rows.list(tables.knowledgeBases, {
        index: 'byWorkspace',
        prefix: [workspace.workspaceId],
        limit: 1,
      })
      if (!next) return
      await this.#clearQueryLog(next.row)
      await this.#remove(next).catch(undefinedIfDeleted)
    }
  }

  /**
   * Lists the collections of a workspace that have vectors, whether or not a knowledge base uses them.
   *
   * @throws workspace_not_found, driver_unavailable
   */
  async listAdoptableCollections(workspaceId: string): Promise<AdoptableCollection[]> {
    const store = requireStore(this.parts.stores, await requireWorkspace(this.parts.rows, workspaceId))
    const collections = (await store.collections?.(workspaceId)) ?? []
    return Promise.all(
      collections
        .filter(({ dimension }) => dimension > 0)
        .map(async collection => ({
          name: collection.name,
          vectorDimension: collection.dimension,
          vectorSimilarity: collection.metric,
          vectorService: vectorServiceOf(collection),
          lexicalEnabled: collection.lexical,
          rerankEnabled: collection.reranks ?? false,
          attached: await this.#creator.isCollectionUsed(collection),
        })),
    )
  }
}

/**
 * Returns the writes that delete a knowledge base and all references to it. The first write fails if the knowledge base
 * has changed or does not exist.
 */
function baseRemovalWrites(base: Stored<KnowledgeBase>): Write[] {
  const { workspaceId, knowledgeBaseId } = base.row
  const prefix = [workspaceId, knowledgeBaseId]
  const references = {
    index: 'byWorkspace',
    prefix: [workspaceId],
    field: 'knowledgeBaseIds',
    value: knowledgeBaseId,
  }
  return [
    { op: 'delete', table: tables.knowledgeBases, key: prefix, ...revisionOf(base) },
    ...[
      tables.documents,
      tables.deletedDocuments,
      tables.deletedChunks,
      tables.knowledgeFilters,
      tables.jobs,
      tables.jobInputs,
      tables.jobBatches,
      tables.queryLog,
    ].map((table): Write => ({ op: 'deleteAll', table, index: 'byKnowledgeBase', prefix })),
    ...[tables.agents, tables.conversations].map(
      (table): Write => ({ op: 'removeFromList', table, ...references }),
    ),
  ]
}

/** @throws forbidden  the caller may see only some rows */
export function requireFullVisibility({ filter }: Visibility): void {
  if (filter) throw new WbError('forbidden', 'the figures would include documents that you cannot see')
}

function totalBytes({ text, payload, vectors, postings }: CollectionBytes): number {
  return text + payload + vectors + postings
}

/** Returns the key of the collection of a knowledge base. */
export function collectionKeyOf({ workspaceId, vectorCollection, name }: KnowledgeBase): CollectionKey {
  return { workspaceId, name: vectorCollection ?? name }
}

function baseNotFound(knowledgeBaseId: string): WbError {
  return new WbError('knowledge_base_not_found', `knowledge base '${knowledgeBaseId}' not found`)
}

function describeStats(
  { records, changedAt, bytes, residentBytes, terms, index }: CollectionStats,
  { dimension, metric }: Collection,
) {
  const { text, payload, vectors, postings } = bytes
  return {
    chunks: records,
    bytes: { total: totalBytes(bytes), text, metadata: payload, vectors, index: postings },
    vectors: { count: dimension === 0 ? 0 : records, dimension, metric, memoryBytes: residentBytes },
    index: index && { ...describeIndex(index), terms },
    lastWriteAt: changedAt === null ? null : toTimestamp(changedAt),
  }
}

function describeIndex({
  language,
  generation,
  segments,
  deletedShare,
  isMerging,
  building,
  failure,
}: LexicalIndexState) {
  return {
    state: building ? ('building' as const) : ('ready' as const),
    language,
    generation,
    segments,
    deletedShare,
    mergePending: isMerging,
    building: building && { chunks: building.records, chunksTotal: building.recordsTotal },
    failure: failure && { at: toTimestamp(failure.at), message: failure.message },
  }
}

function toTimestamp(ms: number): string {
  return new Date(ms).toISOString()
}
