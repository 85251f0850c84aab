import { words } from '../../base/words.ts'
import { WbError } from '../../contract/errors.ts'
import {
  type Collection,
  type CollectionKey,
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
  type SearchReach,
} from '../content.ts'
import { compareCodePoints, createMatcher } from '../filter.ts'
import type { RowStore, Write, WriteOutcome, WriteRefusal } from '../rows.ts'
import { collectionMissing } from '../store-features.ts'
import type { Visibility } from '../visibility.ts'

interface MemoryRecord extends ContentRecord {
  readonly record: number
}

/** A collection and its records by id; never changed, only replaced. */
interface MemoryCollection {
  readonly collection: Collection
  readonly records: ReadonlyMap<string, MemoryRecord>
}

/**
 * Opens a content store in memory, for workspaces whose vectors must never be written to disk. It searches by
 * brute force, and its content is lost when the process ends.
 *
 * @param rows  store for the rows of a unit, which are written before the content is changed
 */
export function openMemoryContent(rows: RowStore): ContentStore {
  const store = new MemoryContent(rows)
  return {
    name: 'memory',
    collection: async key => store.find(key)?.collection,
    write: (changes, units) => store.write(changes, units),
    nearest: async (key, { vector, limit, ...reach }) => store.nearest(key, vector, limit, reach),
    read: async (key, records, options) => store.read(key, records, options),
    owners: async (key, ids) => store.owners(key, ids),
    lexical: {
      search: async (key, { text, limit, ...reach }) => store.search(key, text, limit, reach),
      occurrences: async (key, query) => store.occurrences(key, query),
    },
    listing: { ofDocument: async (key, query) => store.ofDocument(key, query) },
  }
}

class MemoryContent {
  readonly #rows: RowStore
  readonly #shelves = new Map<string, MemoryCollection>()
  #lastCollection = 0
  #lastRecord = 0
  #writing: Promise<unknown> = Promise.resolve()

  constructor(rows: RowStore) {
    this.#rows = rows
  }

  find(key: CollectionKey): MemoryCollection | undefined {
    return this.#shelves.get(collectionKeyText(key))
  }

  /** Runs units one after another, because each waits for its rows to be written. */
  write(changes: readonly ContentWrite[], rows: readonly Write[]): Promise<WriteOutcome> {
    const written = this.#writing.then(() => this.#write(changes, rows))
    this.#writing = written.catch(() => {})
    return written
  }

  async #write(changes: readonly ContentWrite[], rows: readonly Write[]): Promise<WriteOutcome> {
    const draft = new Map<string, MemoryCollection | undefined>()
    const refused = this.#draft(changes, draft)
    if (refused) return { ...refused, at: refused.at + rows.length }
    const outcome = await this.#rows.atomic(rows)
    if (!outcome.ok) return outcome
    for (const [name, shelf] of draft) {
      if (shelf) this.#shelves.set(name, shelf)
      else this.#shelves.delete(name)
    }
    return outcome
  }

  #draft(changes: readonly ContentWrite[], draft: Map<string, MemoryCollection | undefined>) {
    for (const [at, change] of changes.entries()) {
      const name = collectionKeyText(change)
      const before = draft.has(name) ? draft.get(name) : this.#shelves.get(name)
      const after = this.#changed(before, change)
      if (typeof after === 'string') return { ok: false as const, at, reason: after }
      draft.set(name, after)
    }
    return undefined
  }

  #changed(
    shelf: MemoryCollection | undefined,
    change: ContentWrite,
  ): MemoryCollection | undefined | WriteRefusal {
    switch (change.op) {
      case 'createCollection': {
        if (shelf) return 'exists'
        const { op: _, ...described } = change
        const id = ++this.#lastCollection
        const counts = { version: 0, records: 0, fittedRecords: 0 }
        return { collection: { id, ...described, generation: 0, ...counts }, records: new Map() }
      }
      case 'dropCollection':
        return undefined
      case 'deleteDocument':
        return shelf && withoutRecords(shelf, record => record.documentId === change.documentId)
      case 'deleteDocuments':
        return (
          shelf &&
          withoutRecords(
            shelf,
            ({ documentId, payload }) =>
              documentId !== null && payload.knowledgeBaseId === change.knowledgeBaseId,
          )
        )
      case 'deleteRecord':
        return shelf?.records.has(change.id)
          ? withoutRecords(shelf, record => record.id === change.id)
          : 'absent'
      case 'requireOwners':
        return shelf ? checkOwners(shelf, change.owners) : 'absent'
      case 'upsert':
        if (!shelf) return 'absent'
        return change.generation === shelf.collection.generation
          ? this.#upserted(shelf, change.records)
          : 'stale'
    }
  }

  #upserted(shelf: MemoryCollection, added: readonly ContentRecord[]): MemoryCollection {
    const records = new Map(shelf.records)
    for (const record of added) {
      requireDimension(shelf.collection, record.vector)
      if (!record.vector.every(Number.isFinite))
        throw new RangeError('a vector holds a number that is not finite')
      records.delete(record.id)
      records.set(record.id, { ...structuredClone(record), record: ++this.#lastRecord })
    }
    return withRecords(shelf, records)
  }

  nearest(key: CollectionKey, vector: Float32Array, limit: number, reach: SearchReach): ScoredRecord[] {
    const { collection } = this.#require(key)
    requireDimension(collection, vector)
    return bestScored(
      this.#reached(key, reach).map(({ record, vector: stored }) => ({
        record,
        score: similarity(collection.metric, vector, stored),
      })),
      limit,
    )
  }

  /** Scores each record by the share of its words that occur in the query. */
  search(key: CollectionKey, text: string, limit: number, reach: SearchReach): ScoredRecord[] {
    this.#requireLexical(key)
    const asked = new Set(words(text))
    const scored = this.#reached(key, reach).map(kept => {
      const found = wordsOf(kept)
      const matches = found.filter(word => asked.has(word)).length
      return { record: kept.record, score: matches === 0 ? 0 : matches / found.length }
    })
    return bestScored(
      scored.filter(({ score }) => score > 0),
      limit,
    )
  }

  occurrences(
    key: CollectionKey,
    { words: asked, among, visibility }: Parameters<LexicalSearch['occurrences']>[1],
  ): Occurrences {
    this.#requireLexical(key)
    const records = this.#reached(key, { visibility }).map(kept => ({
      record: kept.record,
      words: new Set(wordsOf(kept)),
    }))
    const occurrencesOf = (word: string) => {
      const parts = words(word)
      const holders = records.filter(held => parts.length > 0 && parts.every(part => held.words.has(part)))
      const holding = new Set(holders.map(({ record }) => record))
      return { word, records: holding.size, among: among.filter(record => holding.has(record)) }
    }
    return { records: records.length, words: asked.map(occurrencesOf) }
  }

  read(
    key: CollectionKey,
    records: readonly number[],
    { vectors, visibility }: { vectors: boolean; visibility: Visibility },
  ): RecordView[] {
    const reached = new Map(this.#reached(key, { visibility }).map(kept => [kept.record, kept]))
    return records.flatMap(record => {
      const kept = reached.get(record)
      return kept ? [toRecordView(kept, vectors)] : []
    })
  }

  owners(key: CollectionKey, ids: readonly string[]): RecordOwner[] {
    const shelf = this.find(key)
    return ids.map(id => ({ id, documentId: ownerIn(shelf, id) }))
  }

  ofDocument(
    key: CollectionKey,
    query: {
      documentId: string
      after?: { chunkIndex: number | null; id: string }
      limit: number
      visibility: Visibility
    },
  ): RecordView[] {
    const { after } = query
    return this.#reached(key, query)
      .filter(({ documentId }) => documentId === query.documentId)
      .sort(comparePositions)
      .filter(kept => !after || comparePositions(kept, after) > 0)
      .slice(0, query.limit)
      .map(kept => toRecordView(kept, false))
  }

  #requireLexical(key: CollectionKey): void {
    if (!this.#require(key).collection.lexical)
      throw new WbError('hybrid_not_supported', 'the collection was made without lexical search')
  }

  #require(key: CollectionKey): MemoryCollection {
    const shelf = this.find(key)
    if (!shelf) throw collectionMissing(key)
    return shelf
  }

  #reached(key: CollectionKey, { visibility, filter }: SearchReach): MemoryRecord[] {
    const matches = createMatcher(filter)
    return [...this.#require(key).records.values()].filter(
      ({ payload }) => isVisible(visibility, payload) && matches(payload),
    )
  }
}

function wordsOf({ title, text }: ContentRecord): string[] {
  return words(`${title ?? ''} ${text ?? ''}`)
}

function ownerIn(shelf: MemoryCollection | undefined, id: string): string | null {
  return shelf?.records.get(id)?.documentId ?? null
}

function checkOwners(
  shelf: MemoryCollection,
  owners: readonly RecordOwner[],
): MemoryCollection | WriteRefusal {
  return owners.every(({ id, documentId }) => ownerIn(shelf, id) === documentId) ? shelf : 'stale'
}

function withRecords(
  { collection }: MemoryCollection,
  records: ReadonlyMap<string, MemoryRecord>,
): MemoryCollection {
  return { collection: { ...collection, version: collection.version + 1, records: records.size }, records }
}

function withoutRecords(
  shelf: MemoryCollection,
  leaves: (record: MemoryRecord) => boolean,
): MemoryCollection {
  const kept = [...shelf.records].filter(([, record]) => !leaves(record))
  return kept.length === shelf.records.size ? shelf : withRecords(shelf, new Map(kept))
}

function requireDimension({ dimension }: Collection, vector: Float32Array): void {
  if (vector.length !== dimension)
    throw new WbError(
      'dimension_mismatch',
      `a vector of ${vector.length} numbers, where the collection has ${dimension}`,
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
  for (let at = 0; at < query.length; at++) {
    const [a, b] = [query[at]!, stored[at]!]
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

/** Orders by chunk index, nulls last, then by id. */
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
