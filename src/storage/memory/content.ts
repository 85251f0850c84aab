import { systemClock } from '../../base/clock.ts'
import { compareCodePoints } from '../../base/compare-code-points.ts'
import { words } from '../../base/words.ts'
import { WbError } from '../../contract/errors.ts'
import {
  type Collection,
  type CollectionBytes,
  type CollectionKey,
  type CollectionStats,
  type ContentRecord,
  type ContentStore,
  type ContentWrite,
  collectionKeyText,
  defaultSpace,
  embeddedTitle,
  isDefaultSpace,
  type LexicalSearch,
  type Metric,
  type Occurrences,
  type RecordOwner,
  type RecordVector,
  type RecordView,
  type ScoredRecord,
  type ScoredWord,
  type SearchConstraints,
  type SpaceKey,
  type SpaceLease,
  type UnstagedPassage,
  type WordScores,
} from '../content.ts'
import { createMatcher, joinFilters } from '../filter.ts'
import { takeRecords } from '../record-length.ts'
import type { RowStore, Write, WriteFailure, WriteOutcome } from '../rows.ts'
import { collectionMissing, requireSearchableSpace, requireVectorDimension } from '../store-features.ts'
import type { Visibility } from '../visibility.ts'
import {
  checkOwners,
  checkRecords,
  emptySpace,
  filledSpace,
  type MemoryCollection,
  type MemoryRecord,
  type MemorySpace,
  ownerOf,
  requireVector,
  sumBytes,
  withCarried,
  withoutRecords,
  withPromotedSpace,
  withRecords,
  withVectors,
} from './collection.ts'

/**
 * Opens a content store in memory, for workspaces whose vectors must never be written to disk. A search compares the
 * query with every record. The content is lost when the process ends.
 *
 * @param rows  store for the row writes of a transaction, which are applied before the content is changed
 */
export function openMemoryContent(rows: RowStore): ContentStore {
  const store = new MemoryContent(rows)
  return {
    name: 'memory',
    collection: async key => store.describe(key),
    stats: async key => store.stats(key),
    storedBytes: async keys => keys.map(key => store.storedBytes(key)),
    write: (changes, rowWrites) => store.write(changes, rowWrites),
    nearest: async (key, query) => store.nearest(key, query),
    read: async (key, records, options) => store.read(key, records, options),
    owners: async (key, ids, visibility) => store.owners(key, ids, visibility),
    lexical: {
      search: async (key, { text, limit, ...constraints }) => store.search(key, text, limit, constraints),
      explain: async (key, { text, among, ...constraints }) => store.explain(key, text, among, constraints),
      countOccurrences: async (key, query) => store.countOccurrences(key, query),
    },
    listing: {
      listByDocument: async (key, query) => store.listByDocument(key, query),
      numbersByDocument: async (key, query) => store.numbersByDocument(key, query),
      listDirect: async (key, query) => store.listDirect(key, query),
    },
    spaces: {
      lease: (key, owner, durationMs) => store.lease(key, owner, durationMs),
      renew: (key, owner, durationMs) => store.renew(key, owner, durationMs),
      release: (key, owner) => store.release(key, owner),
      stage: (key, lease, vectors) => store.stage(key, lease, vectors),
      unstaged: async (key, generation, limit) => store.unstaged(key, generation, limit),
      swap: (key, lease) => store.swap(key, lease),
      unfilled: async space => store.unfilled(space),
    },
  }
}

class MemoryContent {
  readonly #rows: RowStore
  readonly #entries = new Map<string, MemoryCollection>()
  #lastCollection = 0
  #lastRecord = 0
  #writing: Promise<unknown> = Promise.resolve()

  constructor(rows: RowStore) {
    this.#rows = rows
  }

  find(key: CollectionKey): MemoryCollection | undefined {
    return this.#entries.get(collectionKeyText(key))
  }

  describe(key: SpaceKey): Collection | undefined {
    const entry = this.find(key)
    const space = entry?.spaces.get(key.space ?? defaultSpace)
    if (!entry || !space) return undefined
    const { dimension, metric, generation, vectors } = space
    const fitted = entry.collection.fitted && isDefaultSpace(key)
    return { ...entry.collection, fitted, dimension, metric, generation, vectors: vectors.size }
  }

  write(changes: readonly ContentWrite[], rows: readonly Write[]): Promise<WriteOutcome> {
    return this.#enqueue(() => this.#write(changes, rows))
  }

  lease(key: SpaceKey, owner: string, durationMs: number): Promise<boolean> {
    return this.#changeSpace(key, space => {
      const now = systemClock.now()
      const isOwner = space.lease?.owner === owner
      if (space.lease && !isOwner && space.lease.until > now) return undefined
      return {
        ...space,
        staged: isOwner ? space.staged : undefined,
        lease: { owner, until: now + durationMs },
      }
    })
  }

  renew(key: SpaceKey, owner: string, durationMs: number): Promise<boolean> {
    return this.#changeSpace(key, space =>
      space.lease?.owner === owner
        ? { ...space, lease: { owner, until: systemClock.now() + durationMs } }
        : undefined,
    )
  }

  async release(key: SpaceKey, owner: string): Promise<void> {
    await this.#changeSpace(key, space =>
      space.lease?.owner === owner ? { ...space, staged: undefined, lease: undefined } : undefined,
    )
  }

  stage(
    key: SpaceKey,
    { generation, owner }: SpaceLease,
    vectors: readonly RecordVector[],
  ): Promise<boolean> {
    return this.#changeSpace(key, (space, entry) => {
      if (space.lease?.owner !== owner) return undefined
      for (const { vector } of vectors) requireVector(space, vector)
      if (generation === space.generation + 1)
        return { ...space, staged: withVectors(space.staged, entry, vectors) }
      if (generation !== space.generation || generation === 0 || isDefaultSpace(key)) return undefined
      const added = vectors.filter(({ record }) => record > space.filledThrough)
      const carried = new Map(
        [...space.carried].filter(([record]) => !vectors.some(v => v.record === record)),
      )
      return { ...filledSpace(space, withVectors(space.vectors, entry, added)), carried }
    })
  }

  unstaged(key: SpaceKey, generation: number, limit: number): UnstagedPassage[] {
    const { generation: current, vectors, staged, carried, filledThrough } = this.#requireSpace(key)
    const isMissing = (record: number) => {
      if (generation === current + 1) return !staged?.has(record)
      return generation !== current || (record > filledThrough && !vectors.has(record))
    }
    return [...this.#require(key).records.values()]
      .filter(({ record }) => isMissing(record))
      .sort((a, b) => a.record - b.record)
      .slice(0, limit)
      .map(stored => {
        const { record, text } = stored
        const vector = generation === current ? carried.get(record) : undefined
        return { record, title: embeddedTitle(stored), text: text ?? '', ...(vector && { vector }) }
      })
  }

  swap(key: SpaceKey, { generation, owner }: SpaceLease): Promise<boolean> {
    return this.#changeSpace(key, (space, entry) => {
      const isComplete = space.staged?.size === entry.records.size
      if (!space.staged || !isComplete || space.lease?.owner !== owner || generation !== space.generation + 1)
        return undefined
      return { ...filledSpace(space, space.staged), generation, staged: undefined, carried: new Map() }
    })
  }

  unfilled(space: string): (CollectionKey & { records: number; vectors: number })[] {
    return [...this.#entries.values()]
      .map(({ collection: { workspaceId, name, records }, spaces }) => {
        const vectors = spaces.get(space)?.vectors.size ?? 0
        return { workspaceId, name, records, vectors }
      })
      .filter(({ records, vectors }) => vectors < records)
  }

  /** Replaces a space, unless `change` returns undefined. Returns true if it was replaced. */
  #changeSpace(
    key: SpaceKey,
    change: (space: MemorySpace, entry: MemoryCollection) => MemorySpace | undefined,
  ): Promise<boolean> {
    return this.#enqueue(() => {
      const name = key.space ?? defaultSpace
      const entry = this.find(key)
      const space = entry?.spaces.get(name)
      const changed = entry && space && change(space, entry)
      if (!changed) return false
      const version = entry.collection.version + (changed.vectors === space.vectors ? 0 : 1)
      this.#entries.set(collectionKeyText(key), {
        ...entry,
        collection: { ...entry.collection, version },
        spaces: new Map(entry.spaces).set(name, changed),
      })
      return true
    })
  }

  /** Runs changes one after another, because a transaction waits for its row writes. */
  #enqueue<T>(change: () => T | Promise<T>): Promise<T> {
    const outcome = this.#writing.then(change)
    this.#writing = outcome.catch(() => {})
    return outcome
  }

  async #write(changes: readonly ContentWrite[], rows: readonly Write[]): Promise<WriteOutcome> {
    const pending = new Map<string, MemoryCollection | undefined>()
    const failure = this.#applyAll(changes, pending)
    if (failure) return { ...failure, at: failure.at + rows.length }
    const outcome = await this.#rows.atomic(rows)
    if (!outcome.ok) return outcome
    for (const [name, entry] of pending) {
      if (entry) this.#entries.set(name, withCarried(this.#entries.get(name), entry))
      else this.#entries.delete(name)
    }
    return outcome
  }

  /** Adds the changed collections to `pending`. Returns the failure of the first change that fails. */
  #applyAll(changes: readonly ContentWrite[], pending: Map<string, MemoryCollection | undefined>) {
    for (const [at, change] of changes.entries()) {
      const name = collectionKeyText(change)
      const before = pending.has(name) ? pending.get(name) : this.#entries.get(name)
      const after = this.#applyChange(before, change)
      if (typeof after === 'string') return { ok: false as const, at, reason: after }
      pending.set(name, after)
    }
    return undefined
  }

  #applyChange(
    entry: MemoryCollection | undefined,
    change: ContentWrite,
  ): MemoryCollection | undefined | WriteFailure {
    switch (change.op) {
      case 'createCollection': {
        if (entry) return 'exists'
        const { workspaceId, name, lexical, fitted } = change
        const id = ++this.#lastCollection
        const state = { version: 0, records: 0, vectorsThrough: 0, fittedRecords: 0, isModelOutdated: false }
        return {
          collection: { id, workspaceId, name, lexical, fitted, ...state },
          records: new Map(),
          spaces: new Map([[defaultSpace, emptySpace(change)]]),
          changedAt: null,
        }
      }
      case 'createSpace':
        if (!entry) return 'absent'
        if (entry.spaces.has(change.space)) return 'exists'
        return { ...entry, spaces: new Map(entry.spaces).set(change.space, emptySpace(change)) }
      case 'dropSpace':
        if (isDefaultSpace(change)) throw new RangeError('the default space cannot be dropped')
        return (
          entry && {
            ...entry,
            spaces: new Map([...entry.spaces].filter(([name]) => name !== change.space)),
          }
        )
      case 'promoteSpace':
        return entry ? withPromotedSpace(entry, change.space) : 'absent'
      case 'dropCollection':
        return undefined
      case 'setLanguage':
        return entry
      case 'deleteDocument':
        return entry && withoutRecords(entry, record => record.documentId === change.documentId)
      case 'deleteDocuments':
        return (
          entry &&
          withoutRecords(
            entry,
            ({ documentId, payload }) =>
              documentId !== null && payload.knowledgeBaseId === change.knowledgeBaseId,
          )
        )
      case 'deleteRecord':
        return entry?.records.has(change.id)
          ? withoutRecords(entry, record => record.id === change.id)
          : 'absent'
      case 'requireOwners':
        return entry ? checkOwners(entry, change) : 'absent'
      case 'requireRecords':
        return entry ? checkRecords(entry, change) : 'absent'
      case 'upsert':
        if (!entry) return 'absent'
        return change.generation === entry.spaces.get(defaultSpace)!.generation
          ? this.#upsert(entry, change.records)
          : 'stale'
    }
  }

  #upsert(entry: MemoryCollection, added: readonly ContentRecord[]): MemoryCollection {
    const records = new Map(entry.records)
    const space = entry.spaces.get(defaultSpace)!
    const vectors = new Map(space.vectors)
    for (const { vector, ...fields } of added) {
      requireVector(space, vector)
      const record = { ...structuredClone(fields), record: ++this.#lastRecord }
      records.delete(record.id)
      records.set(record.id, record)
      vectors.set(record.record, Float32Array.from(vector))
    }
    const spaces = new Map(entry.spaces).set(defaultSpace, { ...space, vectors })
    return withRecords({ ...entry, spaces }, records)
  }

  stats(key: CollectionKey): CollectionStats {
    const entry = this.#require(key)
    const bytes = sumBytes(entry)
    const { collection, changedAt } = entry
    return {
      records: collection.records,
      changedAt,
      bytes,
      residentBytes: bytes.vectors,
      terms: null,
      index: null,
    }
  }

  storedBytes(key: CollectionKey): CollectionBytes | undefined {
    const entry = this.find(key)
    return entry && sumBytes(entry)
  }

  nearest(
    key: SpaceKey,
    {
      vector,
      limit,
      generation,
      ...constraints
    }: { vector: Float32Array; limit: number; generation?: number } & SearchConstraints,
  ): ScoredRecord[] {
    const space = this.#requireSpace(key)
    requireSearchableSpace(key, space.generation, generation)
    requireVectorDimension(space, vector)
    const scored = this.#visibleRecords(key, constraints).flatMap(({ record }) => {
      const stored = space.vectors.get(record)
      return stored ? [{ record, score: similarity(space.metric, vector, stored) }] : []
    })
    return bestScored(scored, limit)
  }

  /** Scores each record by the share of its words that occur in the query. */
  search(key: CollectionKey, text: string, limit: number, constraints: SearchConstraints): ScoredRecord[] {
    this.#requireLexical(key)
    const queryWords = new Set(words(text))
    const scored = this.#visibleRecords(key, constraints).map(record => {
      const recordWords = wordsOf(record)
      const matches = recordWords.filter(word => queryWords.has(word)).length
      return { record: record.record, score: matches === 0 ? 0 : matches / recordWords.length }
    })
    return bestScored(
      scored.filter(({ score }) => score > 0),
      limit,
    )
  }

  explain(
    key: CollectionKey,
    text: string,
    among: readonly number[],
    constraints: SearchConstraints,
  ): WordScores {
    const records = this.#visibleRecords(key, constraints)
    const wordsOfQuery = [...new Set(words(text))].map((word): ScoredWord => {
      const scored = this.search(key, word, records.length, constraints)
      const scores = scored.filter(({ record }) => among.includes(record))
      const terms = scored.length > 0 ? [word] : []
      return { word, match: 'word', terms, records: scored.length, scores }
    })
    return { records: records.length, words: wordsOfQuery }
  }

  countOccurrences(
    key: CollectionKey,
    { words: queryWords, among, visibility }: Parameters<LexicalSearch['countOccurrences']>[1],
  ): Occurrences {
    this.#requireLexical(key)
    const records = this.#visibleRecords(key, { visibility }).map(record => ({
      record: record.record,
      words: new Set(wordsOf(record)),
    }))
    const occurrencesOf = (word: string) => {
      const parts = words(word)
      const matching = new Set(
        records
          .filter(record => parts.length > 0 && parts.every(part => record.words.has(part)))
          .map(({ record }) => record),
      )
      return { word, records: matching.size, among: among.filter(record => matching.has(record)) }
    }
    return { records: records.length, words: queryWords.map(occurrencesOf) }
  }

  read(
    key: SpaceKey,
    records: readonly number[],
    { vectors, visibility, charsMax }: { vectors: boolean; visibility: Visibility; charsMax?: number },
  ): RecordView[] {
    const visible = new Map(this.#visibleRecords(key, { visibility }).map(record => [record.record, record]))
    const space = this.#requireSpace(key)
    if (vectors) requireSearchableSpace(key, space.generation, undefined)
    const views = records.flatMap(number => {
      const record = visible.get(number)
      return record ? [toRecordView(record, vectors ? space.vectors.get(number) : undefined)] : []
    })
    return takeRecords(views, { charsMax })
  }

  owners(key: CollectionKey, ids: readonly string[], visibility: Visibility): RecordOwner[] {
    const entry = this.find(key)
    return ids.map(id => ownerOf(entry, id, visibility))
  }

  listByDocument(
    key: CollectionKey,
    query: {
      documentId: string
      after?: { chunkIndex: number | null; id: string }
      limit: number
      charsMax?: number
      visibility: Visibility
    },
  ): RecordView[] {
    const { after, documentId, visibility } = query
    const views = this.#recordsOf(key, documentId, { visibility })
      .filter(record => !after || comparePositions(record, after) > 0)
      .map(record => toRecordView(record, undefined))
    return takeRecords(views, query)
  }

  numbersByDocument(
    key: CollectionKey,
    { documentId, limit, ...constraints }: { documentId: string; limit: number } & SearchConstraints,
  ): number[] {
    return this.#recordsOf(key, documentId, constraints)
      .slice(0, limit)
      .map(({ record }) => record)
  }

  #recordsOf(key: CollectionKey, documentId: string, constraints: SearchConstraints): MemoryRecord[] {
    return this.#visibleRecords(key, constraints)
      .filter(record => record.documentId === documentId)
      .sort(comparePositions)
  }

  listDirect(
    key: CollectionKey,
    { after, limit, visibility }: { after: number; limit: number; visibility: Visibility },
  ): RecordView[] {
    return this.#visibleRecords(key, { visibility })
      .filter(({ documentId, record }) => documentId === null && record > after)
      .sort((a, b) => a.record - b.record)
      .slice(0, limit)
      .map(record => toRecordView(record, undefined))
  }

  #requireLexical(key: CollectionKey): void {
    if (!this.#require(key).collection.lexical)
      throw new WbError('hybrid_not_supported', 'the collection was created without lexical search')
  }

  #require(key: CollectionKey): MemoryCollection {
    const entry = this.find(key)
    if (!entry) throw collectionMissing(key)
    return entry
  }

  #requireSpace(key: SpaceKey): MemorySpace {
    const space = this.find(key)?.spaces.get(key.space ?? defaultSpace)
    if (!space) throw collectionMissing(key)
    return space
  }

  #visibleRecords(key: CollectionKey, { visibility, filter }: SearchConstraints): MemoryRecord[] {
    const matches = createMatcher(joinFilters(visibility.filter, filter))
    return [...this.#require(key).records.values()].filter(({ payload }) => matches(payload))
  }
}

function wordsOf({ title, text }: MemoryRecord): string[] {
  return words(`${title ?? ''} ${text ?? ''}`)
}

function similarity(metric: Metric, query: Float32Array, stored: Float32Array): number {
  let dot = 0
  let squares = 0
  let querySquares = 0
  let distance = 0
  for (let index = 0; index < query.length; index++) {
    const [a, b] = [query[index]!, stored[index]!]
    dot += a * b
    querySquares += a * a
    squares += b * b
    distance += (a - b) ** 2
  }
  if (metric === 'dot') return dot
  if (metric === 'euclidean') return 1 / (1 + Math.sqrt(distance))
  const norms = Math.sqrt(squares * querySquares)
  return norms === 0 ? 0 : Math.max(-1, Math.min(1, dot / norms))
}

function bestScored(scored: ScoredRecord[], limit: number): ScoredRecord[] {
  return scored.sort((a, b) => b.score - a.score || a.record - b.record).slice(0, limit)
}

interface RecordPosition {
  readonly chunkIndex: number | null
  readonly id: string
}

/** Compares by chunk index (nulls last), then by ID. */
function comparePositions(a: RecordPosition, b: RecordPosition): number {
  const order = (a.chunkIndex ?? Number.POSITIVE_INFINITY) - (b.chunkIndex ?? Number.POSITIVE_INFINITY)
  return Number.isNaN(order) || order === 0 ? compareCodePoints(a.id, b.id) : order
}

function toRecordView(
  { record, id, documentId, chunkIndex, context = null, text, payload }: MemoryRecord,
  vector: Float32Array | undefined,
): RecordView {
  const view = { record, id, documentId, chunkIndex, context, text, payload: structuredClone(payload) }
  return vector ? { ...view, vector: Float32Array.from(vector) } : view
}
