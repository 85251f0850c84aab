import type { CollectionKey, EncodedModel, FitLease, FitResult, StoredPassage } from '../content.ts'
import { damagedStore } from '../damaged-store.ts'
import {
  type CollectionRow,
  encodeVector,
  findCollection,
  requireCollection,
  requireVectorDimension,
  vectorTable,
} from './collections.ts'
import type { SqliteConnection } from './connection.ts'
import { createVectorTable } from './content-changes.ts'
import { deleteQuantizedVectors } from './quantized-vectors.ts'

/** Reads the models of fitted vector spaces, and the records for a fit. */
export class FittedReads {
  readonly #connection: SqliteConnection

  constructor(connection: SqliteConnection) {
    this.#connection = connection
  }

  /** @throws collection_unavailable */
  model(key: CollectionKey): { generation: number; model: EncodedModel | undefined } {
    return this.#connection.snapshot(() => {
      const { id, generation } = requireCollection(this.#connection, key)
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
  passages(key: CollectionKey, after: number, limit: number): StoredPassage[] {
    return this.#connection.snapshot(() => {
      const { id } = requireCollection(this.#connection, key)
      return this.#connection
        .prepare<StoredPassage>(
          `SELECT record, title, text FROM record INDEXED BY record_by_collection
            WHERE collection = ? AND record > ? AND text IS NOT NULL ORDER BY record LIMIT ?`,
        )
        .all(id, after, limit)
    })
  }

  /** @throws collection_unavailable */
  unstaged(key: CollectionKey, generation: number, limit: number): StoredPassage[] {
    return this.#connection.snapshot(() => {
      const collection = requireCollection(this.#connection, key)
      const isStaging = collection.staging === 1 && collection.generation + 1 === generation
      if (!isStaging) return this.#passagesWhere(collection, '1', limit)
      // A fit stages vectors in order of record number, so the unstaged records usually follow the last staged one.
      const staged = vectorTable(collection.id, generation)
      const afterLastStaged = this.#passagesWhere(
        collection,
        `record > coalesce((SELECT max(record) FROM ${staged}), 0)`,
        limit,
      )
      return afterLastStaged.length > 0
        ? afterLastStaged
        : this.#passagesWhere(collection, isUnstagedSql(collection), limit)
    })
  }

  #passagesWhere({ id }: CollectionRow, condition: string, limit: number): StoredPassage[] {
    return this.#connection
      .prepare<StoredPassage>(
        `SELECT record, title, coalesce(text, '') AS text FROM record r INDEXED BY record_by_collection
          WHERE collection = ? AND ${condition} ORDER BY record LIMIT ?`,
      )
      .all(id, limit)
  }

  unfitted(): (CollectionKey & { unfitted: number; records: number })[] {
    return this.#connection
      .prepare<CollectionKey & { unfitted: number; records: number }>(
        `SELECT workspace_id AS workspaceId, name, unfitted, records FROM collection
          WHERE unfitted > 0 AND fitted = 1 ORDER BY id`,
      )
      .all()
  }
}

/** Writes the steps of a fit. Each method must run inside a transaction. */
export class FittedWrites {
  readonly #connection: SqliteConnection

  constructor(connection: SqliteConnection) {
    this.#connection = connection
  }

  /** Acquires or renews the lease. Deletes staged vectors if the lease passes to another owner. */
  lease(key: CollectionKey, owner: string, { now, until }: { now: number; until: number }): boolean {
    const collection = findCollection(this.#connection, key)
    if (!collection) return false
    const isOwner = collection.leaseOwner === owner
    if (collection.leaseOwner !== null && !isOwner && collection.leaseUntil > now) return false
    if (!isOwner) this.#dropStaging(collection)
    this.#connection
      .prepare('UPDATE collection SET lease_owner = ?, lease_until = ? WHERE id = ?')
      .run(owner, until, collection.id)
    return true
  }

  release(key: CollectionKey, owner: string): void {
    const collection = findCollection(this.#connection, key)
    if (collection?.leaseOwner !== owner) return
    this.#dropStaging(collection)
    this.#connection
      .prepare('UPDATE collection SET lease_owner = NULL, lease_until = 0 WHERE id = ?')
      .run(collection.id)
  }

  /** @throws dimension_mismatch  the length of a vector is not the dimension of the collection */
  stage(
    key: CollectionKey,
    fit: FitLease,
    vectors: readonly { record: number; vector: Float32Array }[],
  ): boolean {
    const collection = this.#findCollectionOfFit(key, fit)
    if (!collection) return false
    if (!collection.staging) {
      createVectorTable(this.#connection, collection.id, fit.generation)
      this.#connection.prepare('UPDATE collection SET staging = 1 WHERE id = ?').run(collection.id)
    }
    const insert = this.#connection.prepare(
      `INSERT OR REPLACE INTO ${vectorTable(collection.id, fit.generation)} (record, data)
        SELECT record, ? FROM record WHERE record = ? AND collection = ?`,
    )
    for (const { record, vector } of vectors) {
      requireVectorDimension(collection, vector)
      insert.run(encodeVector(vector), record, collection.id)
    }
    return true
  }

  swap(key: CollectionKey, fit: FitLease, { model, records, through }: FitResult): boolean {
    const { generation } = fit
    const collection = this.#findCollectionOfFit(key, fit)
    if (!collection?.staging || this.#hasUnstagedRecords(collection)) return false
    const { id } = collection
    this.#connection.prepare('DELETE FROM embedder_model WHERE collection = ?').run(id)
    this.#connection
      .prepare('INSERT INTO embedder_model (collection, generation, terms, weights) VALUES (?, ?, ?, ?)')
      .run(id, generation, model.terms, model.weights)
    const table = vectorTable(id, collection.generation)
    this.#connection.database.exec(`DROP TABLE ${table}`)
    deleteQuantizedVectors(this.#connection, table)
    this.#connection
      .prepare(
        `UPDATE collection SET version = version + 1, generation = ?, staging = 0, fitted_records = ?, fitted_through = ?,
          unfitted = (SELECT count(*) FROM record WHERE collection = ? AND record > ?) WHERE id = ?`,
      )
      .run(generation, records, through, id, through, id)
    return true
  }

  /** Returns the collection if the fit creates its next generation, and the owner of the fit still has the lease. */
  #findCollectionOfFit(key: CollectionKey, { generation, owner }: FitLease): CollectionRow | undefined {
    const collection = findCollection(this.#connection, key)
    const isNext = collection?.generation === generation - 1
    return isNext && collection.leaseOwner === owner ? collection : undefined
  }

  #hasUnstagedRecords(collection: CollectionRow): boolean {
    const sql = `SELECT 1 FROM record r WHERE collection = ? AND ${isUnstagedSql(collection)} LIMIT 1`
    return this.#connection.prepare(sql).get(collection.id) !== undefined
  }

  #dropStaging(collection: CollectionRow): void {
    if (!collection.staging) return
    this.#connection.database.exec(`DROP TABLE ${vectorTable(collection.id, collection.generation + 1)}`)
    this.#connection.prepare('UPDATE collection SET staging = 0 WHERE id = ?').run(collection.id)
  }
}

/** Returns an SQL condition that is true if the record `r` has no vector in the next generation. */
function isUnstagedSql({ id, generation }: CollectionRow): string {
  return `NOT EXISTS (SELECT 1 FROM ${vectorTable(id, generation + 1)} v WHERE v.record = r.record)`
}
