import type { ScoredRecord, SearchConstraints, SpaceKey } from '../content.ts'
import { loadScanModule } from '../scan/module.ts'
import { strideOf } from '../scan/quantized-rows.ts'
import { scanBlocks, type VectorBlock } from '../scan/scan-blocks.ts'
import type { ScanWorkers } from '../scan/scan-workers.ts'
import { type ReadVectors, Segment, type SegmentQuery } from '../scan/segment.ts'
import { requireSearchableSpace, requireVectorDimension } from '../store-features.ts'
import type { AllowedRecords } from './allowed-records.ts'
import {
  type CollectionRow,
  decodeVector,
  requireCollection,
  type VectorRow,
  vectorTable,
} from './collections.ts'
import type { SqliteConnection } from './connection.ts'
import { deletionsAfter, lastDeletion } from './deletion-log.ts'
import { readQuantizedVectors } from './quantized-vectors.ts'

/**
 * Maximum bytes of vectors in memory, over all collections. Exact vectors that a search has read stay in memory if all
 * vectors of the collection fit. If even the quantized vectors exceed the maximum, each search reads all vectors from disk.
 */
const RESIDENT_BYTES_MAX = 512 * 1024 * 1024
/** Estimated bytes that a row takes in addition to its integers: record, scale, norms, map entry and padding. */
const ROW_OVERHEAD_BYTES = 88
const BLOCK_ROWS = 256

export interface NearestQuery extends SearchConstraints {
  readonly vector: Float32Array
  readonly limit: number
  /** Generation that the vector was computed for. The search fails if it is not the current one. */
  readonly generation?: number
}

interface StoredVector {
  readonly record: number
  readonly vector: Float32Array
}

export interface VectorIndexOptions {
  /** Maximum bytes of vectors in memory; default 512 MiB. */
  readonly bytesMax?: number
  /** Threads that help with searches of large collections. */
  readonly workers?: ScanWorkers
}

/** In-memory vectors of one generation of a vector space, as of `version` of the collection. */
interface ResidentVectors {
  readonly segment: Segment
  version: number
  lastRecord: number
  lastDeletion: number
}

/**
 * Finds the exact nearest records. Loads the vectors of a collection at its first search, and updates them before
 * each later search.
 */
export class VectorIndex {
  readonly #connection: SqliteConnection
  readonly #allowedRecords: AllowedRecords
  readonly #bytesMax: number
  readonly #workers: ScanWorkers | undefined
  /** Resident vectors by vector table, least recently used first. */
  readonly #residents = new Map<string, ResidentVectors>()

  constructor(
    connection: SqliteConnection,
    allowedRecords: AllowedRecords,
    { bytesMax = RESIDENT_BYTES_MAX, workers }: VectorIndexOptions = {},
  ) {
    this.#connection = connection
    this.#allowedRecords = allowedRecords
    this.#bytesMax = bytesMax
    this.#workers = workers
  }

  /**
   * Returns the nearest allowed records, best first; records with equal scores in ascending order.
   *
   * @throws collection_unavailable  the space does not exist, has never been swapped, or has another generation
   * @throws dimension_mismatch      the length of the vector is not the dimension of the space
   */
  nearest(key: SpaceKey, query: NearestQuery): ScoredRecord[] {
    return this.nearestOfEach(key, [query])[0]!
  }

  /** Returns the results of {@link nearest} for several queries at one time. Throws an error if one of them fails. */
  nearestOfEach(key: SpaceKey, queries: readonly NearestQuery[]): ScoredRecord[][] {
    return this.#connection.snapshot(() => {
      const collection = requireCollection(this.#connection, key)
      for (const { vector, generation } of queries) {
        requireSearchableSpace(key, collection.generation, generation)
        requireVectorDimension(collection, vector)
      }
      const searches = queries.map(query => ({
        query: query.vector,
        k: query.limit,
        allowed: this.#allowedRecords.allowed(collection, query),
      }))
      if (searches.every(({ allowed }) => allowed?.size === 0)) return searches.map(() => [])
      return bytesOf(collection, 1) > this.#bytesMax
        ? searches.map(search => this.#scan(collection, search))
        : this.#resident(collection).segment.nearestOfEach(searches)
    })
  }

  /** Bytes of memory that the loaded vectors take. */
  get residentBytes(): number {
    return [...this.#residents.values()].reduce((bytes, { segment }) => bytes + segment.bytes, 0)
  }

  /** Returns the bytes of memory that the vectors of a collection take, over all its spaces. */
  residentBytesOf(collection: number): number {
    return this.#connection
      .prepare<{ spaceId: number; generation: number }>(
        'SELECT id AS spaceId, generation FROM vector_space WHERE collection = ?',
      )
      .all(collection)
      .reduce((bytes, space) => bytes + (this.#residents.get(vectorTable(space))?.segment.bytes ?? 0), 0)
  }

  #resident(collection: CollectionRow): ResidentVectors {
    const { spaceId, generation } = collection
    const name = vectorTable(collection)
    let resident = this.#residents.get(name)
    this.#remove(vectorTable({ spaceId, generation: generation - 1 }))
    if (resident && !this.#update(collection, resident)) {
      this.#remove(name)
      resident = undefined
    }
    resident ??= this.#load(collection, true) ?? this.#load(collection, false)!
    resident.segment.cachesExact = this.#fitsExact(collection)
    this.#residents.delete(name)
    this.#residents.set(name, resident)
    this.#evict()
    return resident
  }

  /** Loads the vectors of a space. Returns undefined if the stored quantized vectors do not match those of the space. */
  #load(collection: CollectionRow, usesQuantized: boolean): ResidentVectors | undefined {
    const { dimension, metric } = collection
    const readVectors = this.#vectorReader(collection)
    const workers = this.#workersFor(collection)
    const segment = new Segment(loadScanModule(), dimension, metric, readVectors, workers)
    segment.reserve(collection.vectors)
    const resident = {
      segment,
      version: 0,
      lastRecord: 0,
      lastDeletion: lastDeletion(this.#connection, collection.id),
    }
    if (usesQuantized)
      for (const { rows, through } of readQuantizedVectors(this.#connection, collection)) {
        segment.appendQuantized(rows)
        resident.lastRecord = through
      }
    this.#append(collection, resident)
    return usesQuantized && segment.size !== collection.vectors ? undefined : resident
  }

  /**
   * Applies later changes. Returns false if the vectors must be loaded again: the deletion log does not go back far enough,
   * or the collection has become so large that workers need to share the vectors.
   */
  #update(collection: CollectionRow, resident: ResidentVectors): boolean {
    if (!resident.segment.isShared && this.#workersFor(collection)) return false
    if (resident.version === collection.version) return true
    const deletions = deletionsAfter(this.#connection, collection.id, resident.lastDeletion)
    for (const { record } of deletions) resident.segment.remove(record)
    resident.lastDeletion = deletions.at(-1)?.seq ?? resident.lastDeletion
    this.#append(collection, resident)
    // Too many rows mean that a deletion is missing from the log.
    return resident.segment.size === collection.vectors
  }

  /** Appends new records. Their numbers are higher than the last one that was read. */
  #append(collection: CollectionRow, resident: ResidentVectors): void {
    for (const { record, vector } of this.#rows(collection, resident.lastRecord)) {
      resident.segment.append(record, vector)
      resident.lastRecord = record
    }
    resident.version = collection.version
  }

  #workersFor({ vectors, dimension }: CollectionRow): ScanWorkers | undefined {
    return this.#workers?.areWorthwhile(vectors * strideOf(dimension)) ? this.#workers : undefined
  }

  #fitsExact(collection: CollectionRow): boolean {
    return bytesOf(collection, 1 + Float32Array.BYTES_PER_ELEMENT) <= this.#bytesMax
  }

  /** Removes the least recently used segments until the others fit into the memory limit; keeps at least one. */
  #evict(): void {
    let bytes = this.residentBytes
    for (const [name, { segment }] of this.#residents) {
      if (bytes <= this.#bytesMax || this.#residents.size === 1) return
      this.#remove(name)
      bytes -= segment.bytes
    }
  }

  #remove(name: string): void {
    this.#residents.get(name)?.segment.close()
    this.#residents.delete(name)
  }

  #vectorReader(collection: CollectionRow): ReadVectors {
    const table = vectorTable(collection)
    const statement = this.#connection.prepare<VectorRow>(
      `SELECT record, data FROM ${table} WHERE record = ?`,
    )
    return records =>
      records.map(record => {
        const row = statement.get(record) ?? { record, data: null }
        return decodeVector(table, collection.dimension, row)
      })
  }

  *#rows(collection: CollectionRow, after: number): Generator<StoredVector> {
    const table = vectorTable(collection)
    const rows = this.#connection
      .prepare<VectorRow>(`SELECT record, data FROM ${table} WHERE record > ? ORDER BY record`)
      .iterate(after)
    for (const row of rows)
      yield { record: row.record, vector: decodeVector(table, collection.dimension, row) }
  }

  #scan(collection: CollectionRow, search: SegmentQuery): ScoredRecord[] {
    const { dimension, metric } = collection
    return scanBlocks(loadScanModule(), blocksOf(this.#rows(collection, 0), dimension), {
      dimension,
      metric,
      ...search,
    })
  }
}

/** Estimates the bytes of the vectors of a space in memory. */
function bytesOf({ vectors, dimension }: CollectionRow, bytesPerNumber: number): number {
  return vectors * (dimension * bytesPerNumber + ROW_OVERHEAD_BYTES)
}

function* blocksOf(rows: Iterable<StoredVector>, dimension: number): Generator<VectorBlock> {
  let records: number[] = []
  let vectors = new Float32Array(BLOCK_ROWS * dimension)
  for (const { record, vector } of rows) {
    vectors.set(vector, records.length * dimension)
    records.push(record)
    if (records.length < BLOCK_ROWS) continue
    yield { records, vectors }
    records = []
    vectors = new Float32Array(BLOCK_ROWS * dimension)
  }
  if (records.length > 0) yield { records, vectors: vectors.subarray(0, records.length * dimension) }
}
