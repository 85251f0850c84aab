import {
  type CollectionKey,
  type EncodedModel,
  type FitCounts,
  type FitPassage,
  type FitResult,
  isDefaultSpace,
  type RecordVector,
  type SpaceKey,
  type SpaceLease,
  type StoredPassage,
  type UnstagedPassage,
} from '../content.ts'
import { damagedStore } from '../damaged-store.ts'
import { matchesFilter } from '../filter.ts'
import { lowerBound } from '../record-set.ts'
import { requireVectorDimension, spaceChanged } from '../store-features.ts'
import type { Visibility } from '../visibility.ts'
import {
  type CollectionRow,
  decodePayload,
  decodeVector,
  encodeVector,
  findCollection,
  requireCollection,
  stagingTable,
  type VectorRow,
  vectorTable,
} from './collections.ts'
import type { SqliteConnection } from './connection.ts'
import { createVectorTable, dropVectorTable, requireFinite } from './content-changes.ts'

/** Selects what `embeddedTitle` returns. */
const embeddedTitleSql =
  "CASE WHEN context IS NULL THEN title ELSE coalesce(title || char(10), '') || context END AS title"

/** Reads the models of fitted spaces, and the records that a new generation needs. */
export class SpaceReads {
  readonly #connection: SqliteConnection

  constructor(connection: SqliteConnection) {
    this.#connection = connection
  }

  /** @throws collection_unavailable  there is no such collection, or the runtime no longer fits its space */
  model(key: CollectionKey): { generation: number; model: EncodedModel | undefined } {
    return this.#connection.snapshot(() => {
      const { id, generation, fitted } = requireCollection(this.#connection, key)
      if (!fitted) throw spaceChanged()
      const row = this.#connection
        .prepare<{ terms: string; weights: Buffer }>(
          'SELECT terms, weights FROM embedder_model WHERE collection = ? AND generation = ?',
        )
        .get(id, generation)
      const isValid = row && typeof row.terms === 'string' && Buffer.isBuffer(row.weights)
      if (!isValid && (row || generation > 0)) throw damagedStore(`the embedder of collection ${id}`)
      const model = row && { terms: row.terms, weights: Uint8Array.from(row.weights) }
      return { generation, model }
    })
  }

  /** @throws collection_unavailable */
  passages(
    key: CollectionKey,
    { after, limit, visibility }: { after: number; limit: number; visibility: Visibility },
  ): FitPassage[] {
    return this.#connection.snapshot(() => {
      const { id } = requireCollection(this.#connection, key)
      const { filter } = visibility
      const rows = this.#connection
        .prepare<StoredPassage & { payload: string }>(
          `SELECT record, ${embeddedTitleSql}, text${filter ? ', payload' : ''} FROM record INDEXED BY record_by_collection
            WHERE collection = ? AND record > ? AND text IS NOT NULL ORDER BY record LIMIT ?`,
        )
        .all(id, after, limit)
      if (!filter) return rows
      return rows.map(row =>
        matchesFilter(filter, decodePayload(row)) ? row : { record: row.record, title: null, text: null },
      )
    })
  }

  /** @throws collection_unavailable */
  unstaged(key: SpaceKey, generation: number, limit: number): UnstagedPassage[] {
    return this.#connection.snapshot(() => {
      const collection = requireCollection(this.#connection, key)
      if (generation === collection.generation)
        return isDefaultSpace(key)
          ? []
          : this.#withCarried(collection, this.#passagesAfter(collection, collection.filledThrough, limit))
      const isStaging = collection.staging === 1 && collection.generation + 1 === generation
      if (!isStaging) return this.#passagesAfter(collection, 0, limit)
      // Vectors are staged in order of record number, so the unstaged records usually follow the last staged one.
      const afterLastStaged = this.#passagesAfter(collection, this.#lastStaged(collection), limit)
      return afterLastStaged.length > 0
        ? afterLastStaged
        : this.#passagesAfter(collection, 0, limit, isUnstagedSql(collection))
    })
  }

  /** Adds the vectors that records got from the records that they replaced. */
  #withCarried({ spaceId, dimension }: CollectionRow, passages: readonly StoredPassage[]): UnstagedPassage[] {
    const find = this.#connection.prepare<VectorRow>(
      'SELECT record, data FROM carried_vector WHERE record = ? AND space = ?',
    )
    return passages.map(passage => {
      const row = find.get(passage.record, spaceId)
      return row ? { ...passage, vector: decodeVector('carried_vector', dimension, row) } : passage
    })
  }

  #lastStaged(collection: CollectionRow): number {
    return this.#connection
      .prepare<{ last: number }>(`SELECT coalesce(max(record), 0) AS last FROM ${stagingTable(collection)}`)
      .get()!.last
  }

  #passagesAfter({ id }: CollectionRow, after: number, limit: number, condition = '1'): StoredPassage[] {
    return this.#connection
      .prepare<StoredPassage>(
        `SELECT record, ${embeddedTitleSql}, coalesce(text, '') AS text FROM record r INDEXED BY record_by_collection
          WHERE collection = ? AND record > ? AND ${condition} ORDER BY record LIMIT ?`,
      )
      .all(id, after, limit)
  }

  unfilled(space: string): (CollectionKey & { records: number; vectors: number })[] {
    return this.#connection
      .prepare<CollectionKey & { records: number; vectors: number }>(
        `SELECT workspace_id AS workspaceId, c.name, records, coalesce(vectors, 0) AS vectors
          FROM collection c LEFT JOIN vector_space s ON s.collection = c.id AND s.name = ?
          WHERE coalesce(vectors, 0) < records ORDER BY c.id`,
      )
      .all(space)
  }

  fittedCollections(): CollectionKey[] {
    return this.#connection
      .prepare<CollectionKey>(
        `SELECT workspace_id AS workspaceId, c.name FROM vector_space s JOIN collection c ON c.id = s.collection
          WHERE fitted = 1 ORDER BY s.collection`,
      )
      .all()
  }

  /** @param learnableOf  returns the records to count; undefined for all records */
  fitCounts(
    key: CollectionKey,
    learnableOf: (collection: CollectionRow) => { readonly ascending: Float64Array } | undefined,
  ): FitCounts | undefined {
    return this.#connection.snapshot(() => {
      const collection = findCollection(this.#connection, key)
      if (!collection) return undefined
      const { records, unfitted, fittedThrough, fittedRecords } = collection
      const learnable = learnableOf(collection)?.ascending
      if (!learnable) return { records, unfitted }
      const fitted = lowerBound(learnable, fittedThrough + 1)
      const deleted = Math.max(0, fittedRecords - fitted)
      return { records: learnable.length, unfitted: learnable.length - fitted + deleted }
    })
  }
}

/** Creates new generations of vector spaces, step by step. Each method must run inside a transaction. */
export class SpaceWrites {
  readonly #connection: SqliteConnection

  constructor(connection: SqliteConnection) {
    this.#connection = connection
  }

  /** Acquires or renews the lease. Deletes staged vectors if the lease passes to another owner. */
  lease(key: SpaceKey, owner: string, { now, until }: { now: number; until: number }): boolean {
    const collection = findCollection(this.#connection, key)
    if (!collection) return false
    const isOwner = collection.leaseOwner === owner
    if (collection.leaseOwner !== null && !isOwner && collection.leaseUntil > now) return false
    if (!isOwner) this.#dropStaging(collection)
    this.#setLease(collection, owner, until)
    return true
  }

  renew(key: SpaceKey, owner: string, until: number): boolean {
    const collection = this.#findLeased(key, owner)
    if (collection) this.#setLease(collection, owner, until)
    return collection !== undefined
  }

  #setLease({ spaceId }: CollectionRow, owner: string | null, until: number): void {
    this.#connection
      .prepare('UPDATE vector_space SET lease_owner = ?, lease_until = ? WHERE id = ?')
      .run(owner, until, spaceId)
  }

  release(key: SpaceKey, owner: string): void {
    const collection = findCollection(this.#connection, key)
    if (collection?.leaseOwner !== owner) return
    this.#dropStaging(collection)
    this.#setLease(collection, null, 0)
  }

  /** Marks all records as unfitted. A running fit loses its lease. */
  invalidate(key: CollectionKey): void {
    const collection = findCollection(this.#connection, key)
    if (!collection?.fitted) return
    this.#dropStaging(collection)
    this.#setLease(collection, null, 0)
    this.#connection
      .prepare('UPDATE vector_space SET unfitted = vectors, fitted_through = 0 WHERE id = ?')
      .run(collection.spaceId)
  }

  /** @throws dimension_mismatch  the length of a vector is not the dimension of the space */
  stage(key: SpaceKey, { generation, owner }: SpaceLease, vectors: readonly RecordVector[]): boolean {
    const collection = this.#findLeased(key, owner)
    if (!collection) return false
    if (generation === collection.generation + 1) {
      if (!collection.staging) this.#createStaging(collection)
      this.#insert(collection, { table: stagingTable(collection), after: 0 }, vectors)
      return true
    }
    if (generation !== collection.generation || generation === 0 || isDefaultSpace(key)) return false
    const table = vectorTable(collection)
    const added = this.#insert(collection, { table, after: collection.filledThrough }, vectors)
    const dropCarried = this.#connection.prepare('DELETE FROM carried_vector WHERE record = ? AND space = ?')
    for (const { record } of vectors) dropCarried.run(record, collection.spaceId)
    if (added > 0) this.#recordFilling(collection, added)
    return true
  }

  /** Returns the number of new rows. */
  #insert(
    collection: CollectionRow,
    { table, after }: { table: string; after: number },
    vectors: readonly RecordVector[],
  ): number {
    const insert = this.#connection.prepare(
      `INSERT OR IGNORE INTO ${table} (record, data)
        SELECT record, ? FROM record WHERE record = ? AND collection = ? AND record > ?`,
    )
    let added = 0
    for (const { record, vector } of vectors) {
      requireVectorDimension(collection, vector)
      requireFinite(vector)
      added += insert.run(encodeVector(vector), record, collection.id, after).changes
    }
    return added
  }

  #recordFilling(collection: CollectionRow, added: number): void {
    this.#connection
      .prepare(
        `UPDATE vector_space SET vectors = vectors + ?,
          filled_through = (SELECT max(record) FROM ${vectorTable(collection)}) WHERE id = ?`,
      )
      .run(added, collection.spaceId)
    this.#recordVersion(collection.id)
  }

  /** @throws RangeError  a model is given for a space that is not fitted, or missing for a fitted space */
  swap(key: SpaceKey, { generation, owner }: SpaceLease, fitted: FitResult | undefined): boolean {
    const collection = this.#findLeased(key, owner)
    if (collection?.generation !== generation - 1) return false
    if (!collection.staging || this.#hasUnstagedRecords(collection)) return false
    if ((fitted !== undefined) !== (collection.fitted === 1))
      throw new RangeError('a fitted space needs a model, and other spaces have none')
    const { id, spaceId, records } = collection
    dropVectorTable(this.#connection, vectorTable(collection))
    this.#connection.prepare('DELETE FROM carried_vector WHERE space = ?').run(spaceId)
    this.#connection
      .prepare(
        `UPDATE vector_space SET generation = ?, staging = 0, vectors = ?,
          filled_through = (SELECT coalesce(max(record), 0) FROM ${stagingTable(collection)}) WHERE id = ?`,
      )
      .run(generation, records, spaceId)
    if (fitted) this.#storeModel(collection, fitted)
    this.#recordVersion(id)
    return true
  }

  #storeModel({ id, spaceId, generation }: CollectionRow, { model, records, through }: FitResult): void {
    this.#connection.prepare('DELETE FROM embedder_model WHERE collection = ?').run(id)
    this.#connection
      .prepare('INSERT INTO embedder_model (collection, generation, terms, weights) VALUES (?, ?, ?, ?)')
      .run(id, generation + 1, model.terms, model.weights)
    this.#connection
      .prepare(
        `UPDATE vector_space SET fitted_records = ?, fitted_through = ?,
          unfitted = (SELECT count(*) FROM record WHERE collection = ? AND record > ?) WHERE id = ?`,
      )
      .run(records, through, id, through, spaceId)
  }

  #recordVersion(collection: number): void {
    this.#connection.prepare('UPDATE collection SET version = version + 1 WHERE id = ?').run(collection)
  }

  #findLeased(key: SpaceKey, owner: string): CollectionRow | undefined {
    const collection = findCollection(this.#connection, key)
    return collection?.leaseOwner === owner ? collection : undefined
  }

  #hasUnstagedRecords(collection: CollectionRow): boolean {
    const sql = `SELECT 1 FROM record r WHERE collection = ? AND ${isUnstagedSql(collection)} LIMIT 1`
    return this.#connection.prepare(sql).get(collection.id) !== undefined
  }

  #createStaging(collection: CollectionRow): void {
    createVectorTable(this.#connection, stagingTable(collection))
    this.#connection.prepare('UPDATE vector_space SET staging = 1 WHERE id = ?').run(collection.spaceId)
  }

  #dropStaging(collection: CollectionRow): void {
    if (!collection.staging) return
    dropVectorTable(this.#connection, stagingTable(collection))
    this.#connection.prepare('UPDATE vector_space SET staging = 0 WHERE id = ?').run(collection.spaceId)
  }
}

/** Returns an SQL condition that is true if the record `r` has no vector in the next generation. */
function isUnstagedSql(collection: CollectionRow): string {
  return `NOT EXISTS (SELECT 1 FROM ${stagingTable(collection)} v WHERE v.record = r.record)`
}
