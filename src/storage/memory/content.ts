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
  type LexicalSearch,
  type Metric,
  type Occurrences,
  type Payload,
  type RecordOwner,
  type RecordView,
  type ScoredRecord,
  type SearchConstraints,
} from '../content.ts'
import { createMatcher } from '../filter.ts'
import type { RowStore, Write, WriteFailure, WriteOutcome } from '../rows.ts'
import { collectionMissing } from '../store-features.ts'
import type { Visibility } from '../visibility.ts'

interface MemoryRecord extends ContentRecord {
  readonly record: number
}

/** A collection, with its records by ID. Immutable: a write replaces it. */
interface MemoryCollection {
  readonly collection: Collection
  readonly records: ReadonlyMap<string, MemoryRecord>
  /** Time of the last change of a record in milliseconds since 1970. */
  readonly changedAt: number | null
}

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
    collection: async key => store.find(key)?.collection,
    stats: async key => store.stats(key),
    storedBytes: async keys => keys.map(key => store.storedBytes(key)),
    write: (changes, rowWrites) => store.write(changes, rowWrites),
    nearest: async (key, { vector, limit, ...constraints }) => store.nearest(key, vector, limit, constraints),
    read: async (key, records, options) => store.read(key, records, options),
    owners: async (key, ids) => store.owners(key, ids),
    lexical: {
      search: async (key, { text, limit, ...constraints }) => store.search(key, text, limit, constraints),
      occurrences: async (key, query) => store.occurrences(key, query),
    },
    listing: { listByDocument: async (key, query) => store.listByDocument(key, query) },
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

  /** Runs transactions one after another, because each waits for its row writes. */
  write(changes: readonly ContentWrite[], rows: readonly Write[]): Promise<WriteOutcome> {
    const outcome = this.#writing.then(() => this.#write(changes, rows))
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
      if (entry) this.#entries.set(name, entry)
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
        const { op: _, language: __, ...settings } = change
        const id = ++this.#lastCollection
        const counts = { version: 0, records: 0, fittedRecords: 0 }
        return {
          collection: { id, ...settings, generation: 0, ...counts },
          records: new Map(),
          changedAt: null,
        }
      }
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
        return entry ? checkOwners(entry, change.owners) : 'absent'
      case 'upsert':
        if (!entry) return 'absent'
        return change.generation === entry.collection.generation
          ? this.#upsert(entry, change.records)
          : 'stale'
    }
  }

  #upsert(entry: MemoryCollection, added: readonly ContentRecord[]): MemoryCollection {
    const records = new Map(entry.records)
    for (const record of added) {
      requireDimension(entry.collection, record.vector)
      if (!record.vector.every(Number.isFinite))
        throw new RangeError('a vector contains a number that is not finite')
      records.delete(record.id)
      records.set(record.id, { ...structuredClone(record), record: ++this.#lastRecord })
    }
    return withRecords(entry, records)
  }

  stats(key: CollectionKey): CollectionStats {
    const { collection, records, changedAt } = this.#require(key)
    const bytes = sumBytes({ collection, records })
    const residentBytes = bytes.vectors
    return { records: collection.records, changedAt, bytes, residentBytes, terms: null, index: null }
  }

  storedBytes(key: CollectionKey): CollectionBytes | undefined {
    const entry = this.find(key)
    return entry && sumBytes(entry)
  }

  nearest(
    key: CollectionKey,
    vector: Float32Array,
    limit: number,
    constraints: SearchConstraints,
  ): ScoredRecord[] {
    const { collection } = this.#require(key)
    requireDimension(collection, vector)
    return bestScored(
      this.#visibleRecords(key, constraints).map(({ record, vector: stored }) => ({
        record,
        score: similarity(collection.metric, vector, stored),
      })),
      limit,
    )
  }

  /** The score of a record is the share of its words that occur in the query. */
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

  occurrences(
    key: CollectionKey,
    { words: queryWords, among, visibility }: Parameters<LexicalSearch['occurrences']>[1],
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
    key: CollectionKey,
    records: readonly number[],
    { vectors, visibility }: { vectors: boolean; visibility: Visibility },
  ): RecordView[] {
    const visible = new Map(this.#visibleRecords(key, { visibility }).map(record => [record.record, record]))
    return records.flatMap(number => {
      const record = visible.get(number)
      return record ? [toRecordView(record, vectors)] : []
    })
  }

  owners(key: CollectionKey, ids: readonly string[]): RecordOwner[] {
    const entry = this.find(key)
    return ids.map(id => ({ id, documentId: documentOf(entry, id) }))
  }

  listByDocument(
    key: CollectionKey,
    query: {
      documentId: string
      after?: { chunkIndex: number | null; id: string }
      limit: number
      visibility: Visibility
    },
  ): RecordView[] {
    const { after } = query
    return this.#visibleRecords(key, query)
      .filter(({ documentId }) => documentId === query.documentId)
      .sort(comparePositions)
      .filter(record => !after || comparePositions(record, after) > 0)
      .slice(0, query.limit)
      .map(record => toRecordView(record, false))
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

  #visibleRecords(key: CollectionKey, { visibility, filter }: SearchConstraints): MemoryRecord[] {
    const matches = createMatcher(filter)
    return [...this.#require(key).records.values()].filter(
      ({ payload }) => isVisible(visibility, payload) && matches(payload),
    )
  }
}

function sumBytes({
  collection,
  records,
}: Pick<MemoryCollection, 'collection' | 'records'>): CollectionBytes {
  const vectors = collection.records * collection.dimension * Float32Array.BYTES_PER_ELEMENT
  const bytes = { text: 0, payload: 0, vectors, postings: 0 }
  for (const { title, text, payload } of records.values()) {
    bytes.text += Buffer.byteLength(title ?? '') + Buffer.byteLength(text ?? '')
    bytes.payload += Buffer.byteLength(JSON.stringify(payload))
  }
  return bytes
}

function wordsOf({ title, text }: ContentRecord): string[] {
  return words(`${title ?? ''} ${text ?? ''}`)
}

function documentOf(entry: MemoryCollection | undefined, id: string): string | null {
  return entry?.records.get(id)?.documentId ?? null
}

function checkOwners(
  entry: MemoryCollection,
  owners: readonly RecordOwner[],
): MemoryCollection | WriteFailure {
  return owners.every(({ id, documentId }) => documentOf(entry, id) === documentId) ? entry : 'stale'
}

function withRecords(
  { collection }: MemoryCollection,
  records: ReadonlyMap<string, MemoryRecord>,
): MemoryCollection {
  return {
    collection: { ...collection, version: collection.version + 1, records: records.size },
    records,
    changedAt: systemClock.now(),
  }
}

function withoutRecords(
  entry: MemoryCollection,
  isRemoved: (record: MemoryRecord) => boolean,
): MemoryCollection {
  const remaining = [...entry.records].filter(([, record]) => !isRemoved(record))
  return remaining.length === entry.records.size ? entry : withRecords(entry, new Map(remaining))
}

function requireDimension({ dimension }: Collection, vector: Float32Array): void {
  if (vector.length !== dimension)
    throw new WbError(
      'dimension_mismatch',
      `the vector has ${vector.length} numbers, but the collection requires ${dimension}`,
    )
}

function isVisible({ principals }: Visibility, payload: Payload): boolean {
  if (principals === 'all') return true
  const readers = payload.visible_to
  return Array.isArray(readers) && readers.some(reader => reader === '*' || principals.includes(reader))
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
  { record, id, documentId, chunkIndex, text, payload, vector }: MemoryRecord,
  withVector: boolean,
): RecordView {
  const view = { record, id, documentId, chunkIndex, text, payload: structuredClone(payload) }
  return withVector ? { ...view, vector: Float32Array.from(vector) } : view
}
