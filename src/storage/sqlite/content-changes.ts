import { isDeepStrictEqual } from 'node:util'
import { languageCode } from '../../base/analysis/languages.ts'
import { type Clock, systemClock } from '../../base/clock.ts'
import {
  type ContentRecord,
  type ContentWrite,
  defaultSpace,
  isDefaultSpace,
  type Metric,
} from '../content.ts'
import type { WriteFailure, WriteOutcome } from '../rows.ts'
import { requireVectorDimension } from '../store-features.ts'
import { CarriedVectors } from './carried-vectors.ts'
import {
  type CollectionRow,
  encodeVector,
  findCollection,
  listSpaces,
  stagingTable,
  tablesOfSpace,
  textTable,
  vectorTable,
} from './collections.ts'
import type { DeferStep } from './commit-queue.ts'
import type { SqliteConnection } from './connection.ts'
import type { PostingChanges } from './posting-changes.ts'
import { deleteQuantizedVectors } from './quantized-vectors.ts'
import { ownerOfRecord } from './record-reader.ts'

/**
 * Number of deletions that the log keeps. Vectors in memory are updated from the log. It is trimmed to this
 * number when it exceeds twice as many.
 */
const DELETIONS_LOGGED_MIN = 10_000

type ContentOperation<K extends ContentWrite['op']> = Extract<ContentWrite, { op: K }>

/** Lengths in bytes of the title and text, and of the payload, of records. */
interface StoredBytes {
  text: number
  payload: number
}

function addBytes(sum: StoredBytes, bytes: StoredBytes, factor: 1 | -1): void {
  sum.text += factor * bytes.text
  sum.payload += factor * bytes.payload
}

/** Applies content changes inside a transaction. */
export class ContentChanges {
  readonly #connection: SqliteConnection
  readonly #postings: PostingChanges
  readonly #clock: Clock
  /** Vectors of the records that the current transaction deletes; undefined if it adds none. */
  #carried: CarriedVectors | undefined

  constructor(connection: SqliteConnection, postings: PostingChanges, clock: Clock = systemClock) {
    this.#connection = connection
    this.#postings = postings
    this.#clock = clock
  }

  /**
   * Applies changes in order, up to the first that fails. The caller must roll back the earlier changes.
   *
   * @throws dimension_mismatch  the length of a vector is not the dimension of its collection
   */
  apply(changes: readonly ContentWrite[], defer: DeferStep): WriteOutcome {
    const addsRecords = changes.some(({ op }) => op === 'upsert')
    this.#carried = addsRecords ? new CarriedVectors(this.#connection) : undefined
    for (const [at, change] of changes.entries()) {
      const reason = this.#apply(change, defer)
      if (reason) return { ok: false, at, reason }
    }
    return { ok: true }
  }

  #apply(change: ContentWrite, defer: DeferStep): WriteFailure | undefined {
    const { workspaceId, name } = change
    const collection = findCollection(this.#connection, { workspaceId, name })
    switch (change.op) {
      case 'createCollection':
        return collection ? 'exists' : this.#create(change)
      case 'dropCollection':
        if (collection) this.#drop(collection, defer)
        return undefined
      case 'createSpace':
        return collection ? this.#createSpace(collection, change) : 'absent'
      case 'dropSpace':
        this.#dropSpace(change)
        return undefined
      case 'promoteSpace':
        return collection ? this.#promoteSpace(collection, change) : 'absent'
      case 'setLanguage':
        if (collection) this.#setLanguage(collection, change)
        return undefined
      case 'deleteDocument':
        if (collection) this.#deleteDocument(collection, change, defer)
        return undefined
      case 'deleteDocuments':
        if (collection) this.#deleteDocuments(collection, change, defer)
        return undefined
      case 'upsert':
        return collection ? this.#upsert(collection, change, defer) : 'absent'
      case 'deleteRecord':
        return collection ? this.#deleteRecord(collection, change, defer) : 'absent'
      case 'requireOwners':
        return collection ? this.#requireOwners(collection, change) : 'absent'
      case 'requireRecords':
        return collection ? this.#requireRecords(collection, change) : 'absent'
    }
  }

  #create({
    workspaceId,
    name,
    dimension,
    metric,
    lexical,
    language,
    fitted,
  }: ContentOperation<'createCollection'>): undefined {
    const { lastInsertRowid } = this.#connection
      .prepare('INSERT INTO collection (workspace_id, name, lexical, language) VALUES (?, ?, ?, ?)')
      .run(workspaceId, name, lexical ? 1 : 0, language)
    const id = Number(lastInsertRowid)
    this.#insertSpace(id, { space: defaultSpace, dimension, metric, fitted })
    if (lexical) this.#postings.create(id, language)
  }

  #createSpace({ id }: CollectionRow, change: ContentOperation<'createSpace'>): WriteFailure | undefined {
    if (findCollection(this.#connection, change)) return 'exists'
    this.#insertSpace(id, { ...change, fitted: false, generation: change.isSearchable ? 1 : 0 })
    return undefined
  }

  #insertSpace(
    collection: number,
    {
      space,
      dimension,
      metric,
      fitted,
      generation = 0,
    }: { space: string; dimension: number; metric: Metric; fitted: boolean; generation?: number },
  ): void {
    const { lastInsertRowid } = this.#connection
      .prepare(
        'INSERT INTO vector_space (collection, name, dimension, metric, fitted, generation) VALUES (?, ?, ?, ?, ?, ?)',
      )
      .run(collection, space, dimension, metric, fitted ? 1 : 0, generation)
    createVectorTable(this.#connection, vectorTable({ spaceId: Number(lastInsertRowid), generation }))
  }

  #dropSpace(change: ContentOperation<'dropSpace'>): void {
    if (isDefaultSpace(change)) throw new RangeError('the default space cannot be dropped')
    const space = findCollection(this.#connection, change)
    if (!space) return
    this.#connection.prepare('DELETE FROM vector_space WHERE id = ?').run(space.spaceId)
    this.#connection.prepare('DELETE FROM carried_vector WHERE space = ?').run(space.spaceId)
    for (const table of tablesOfSpace(space)) dropVectorTable(this.#connection, table)
  }

  #promoteSpace(previous: CollectionRow, change: ContentOperation<'promoteSpace'>): WriteFailure | undefined {
    if (isDefaultSpace(change)) throw new RangeError('the default space is already the default')
    const space = findCollection(this.#connection, change)
    if (!space) return 'absent'
    if (space.vectors < space.records) return 'stale'
    for (const table of tablesOfSpace(previous)) dropVectorTable(this.#connection, table)
    this.#connection.prepare('DELETE FROM vector_space WHERE id = ?').run(previous.spaceId)
    this.#connection.prepare('DELETE FROM embedder_model WHERE collection = ?').run(previous.id)
    this.#connection.prepare('DELETE FROM carried_vector WHERE space = ?').run(space.spaceId)
    const generation = previous.generation + 1
    if (generation !== space.generation)
      renameVectorTable(this.#connection, vectorTable(space), vectorTable({ ...space, generation }))
    this.#connection
      .prepare(
        `UPDATE vector_space SET name = '${defaultSpace}', generation = ?, lease_owner = NULL, lease_until = 0 WHERE id = ?`,
      )
      .run(generation, space.spaceId)
    this.#connection.prepare('UPDATE collection SET version = version + 1 WHERE id = ?').run(previous.id)
    return undefined
  }

  #setLanguage(collection: CollectionRow, { language }: ContentOperation<'setLanguage'>): void {
    const isSame = languageCode(collection.language) === languageCode(language)
    const reindex = isSame ? collection.reindex : collection.lexical
    this.#connection
      .prepare('UPDATE collection SET language = ?, reindex = ? WHERE id = ?')
      .run(language, reindex, collection.id)
  }

  #drop({ id }: CollectionRow, defer: DeferStep): void {
    const spaces = listSpaces(this.#connection, id)
    const vectors = spaces.flatMap(tablesOfSpace)
    this.#postings.dropCollection(id)
    for (const { spaceId } of spaces)
      this.#connection.prepare('DELETE FROM carried_vector WHERE space = ?').run(spaceId)
    for (const table of ['record', 'record_gone', 'embedder_model', 'vector_space'])
      this.#connection.prepare(`DELETE FROM ${table} WHERE collection = ?`).run(id)
    this.#connection.prepare('DELETE FROM collection WHERE id = ?').run(id)
    // Deferred, because earlier tasks of the commit may still have to update the full-text table.
    defer(() => {
      for (const table of vectors) dropVectorTable(this.#connection, table)
      this.#connection.database.exec(`DROP TABLE IF EXISTS ${textTable(id)}`)
    })
  }

  #upsert(
    collection: CollectionRow,
    { generation, records }: ContentOperation<'upsert'>,
    defer: DeferStep,
  ): WriteFailure | undefined {
    if (generation !== collection.generation) return 'stale'
    const find = this.#connection.prepare<{ record: number }>(
      'SELECT record FROM record WHERE collection = ? AND id = ?',
    )
    const replaced: number[] = []
    const growth: StoredBytes = { text: 0, payload: 0 }
    for (const record of records) {
      requireVectorDimension(collection, record.vector)
      requireFinite(record.vector)
      const existing = find.get(collection.id, record.id)
      if (existing) {
        this.#carried?.remember(collection.id, [existing.record])
        addBytes(growth, this.#remove(collection, existing.record, defer), -1)
        replaced.push(existing.record)
      }
      addBytes(growth, this.#insert(collection, record, defer), 1)
    }
    this.#deleteVectors(collection, replaced)
    this.#recordChange(collection, { added: records.length, removed: replaced, growth })
    return undefined
  }

  #deleteDocument(
    collection: CollectionRow,
    { documentId }: ContentOperation<'deleteDocument'>,
    defer: DeferStep,
  ): void {
    const rows = this.#connection
      .prepare<{ record: number }>('SELECT record FROM record WHERE collection = ? AND document_id = ?')
      .all(collection.id, documentId)
    this.#removeAll(collection, rows, defer)
  }

  #deleteDocuments(
    collection: CollectionRow,
    { knowledgeBaseId }: ContentOperation<'deleteDocuments'>,
    defer: DeferStep,
  ): void {
    const rows = this.#connection
      .prepare<{ record: number }>(
        `SELECT record FROM record
          WHERE collection = ? AND document_id IS NOT NULL AND payload ->> '$.knowledgeBaseId' = ?`,
      )
      .all(collection.id, knowledgeBaseId)
    this.#removeAll(collection, rows, defer)
  }

  /** Deletes from one table at a time in key order, so that tables do not evict each other's pages from the cache. */
  #removeAll(collection: CollectionRow, rows: readonly { record: number }[], defer: DeferStep): void {
    const removed = rows.map(({ record }) => record).sort((a, b) => a - b)
    if (removed.length === 0) return
    const { id, fullText, lexical } = collection
    const growth: StoredBytes = { text: 0, payload: 0 }
    this.#carried?.remember(id, removed)
    for (const record of removed) addBytes(growth, this.#deleteRow(record), -1)
    this.#deleteVectors(collection, removed)
    const log = this.#connection.prepare('INSERT INTO record_gone (collection, record) VALUES (?, ?)')
    for (const record of removed) log.run(id, record)
    if (lexical) for (const record of removed) this.#postings.remove(id, record, defer)
    if (fullText)
      defer(() => {
        const statement = this.#connection.prepare(`DELETE FROM ${textTable(id)} WHERE rowid = ?`)
        for (const record of removed) statement.run(record)
      })
    this.#recordChange(collection, { added: 0, removed, growth })
  }

  #deleteRecord(
    collection: CollectionRow,
    { id }: ContentOperation<'deleteRecord'>,
    defer: DeferStep,
  ): WriteFailure | undefined {
    const row = this.#connection
      .prepare<{ record: number }>('SELECT record FROM record WHERE collection = ? AND id = ?')
      .get(collection.id, id)
    if (!row) return 'absent'
    this.#removeAll(collection, [row], defer)
    return undefined
  }

  #requireOwners(
    { id }: CollectionRow,
    { owners, visibility }: ContentOperation<'requireOwners'>,
  ): WriteFailure | undefined {
    const areUnchanged = owners.every(owner => {
      const current = ownerOfRecord(this.#connection, { collection: id, id: owner.id, visibility })
      return isDeepStrictEqual(current, owner)
    })
    return areUnchanged ? undefined : 'stale'
  }

  #requireRecords(
    { id }: CollectionRow,
    { records }: ContentOperation<'requireRecords'>,
  ): WriteFailure | undefined {
    const find = this.#connection.prepare('SELECT 1 FROM record WHERE record = ? AND collection = ?')
    return records.every(record => find.get(record, id)) ? undefined : 'stale'
  }

  #insert(collection: CollectionRow, record: ContentRecord, defer: DeferStep): StoredBytes {
    const { id, lexical, fullText } = collection
    const payload = JSON.stringify(record.payload)
    const { lastInsertRowid } = this.#connection
      .prepare(
        'INSERT INTO record (collection, id, document_id, chunk_index, title, context, text, payload) VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
      )
      .run(
        id,
        record.id,
        record.documentId,
        record.chunkIndex,
        record.title,
        record.context ?? null,
        record.text,
        payload,
      )
    const number = Number(lastInsertRowid)
    this.#connection
      .prepare(`INSERT INTO ${vectorTable(collection)} (record, data) VALUES (?, ?)`)
      .run(number, encodeVector(record.vector))
    this.#carried?.carry(id, number, record)
    const { title, text } = record
    const bytes = {
      text: Buffer.byteLength(title ?? '') + Buffer.byteLength(text ?? ''),
      payload: Buffer.byteLength(payload),
    }
    if (!lexical || (title === null && text === null)) return bytes
    this.#postings.add(id, { record: number, title, text }, defer)
    if (fullText)
      defer(() =>
        this.#connection
          .prepare(`INSERT INTO ${textTable(id)} (rowid, title, text) VALUES (?, ?, ?)`)
          .run(number, title, text),
      )
    return bytes
  }

  /** Deletes a record without its vectors. */
  #remove({ id, lexical, fullText }: CollectionRow, record: number, defer: DeferStep): StoredBytes {
    const bytes = this.#deleteRow(record)
    this.#connection.prepare('INSERT INTO record_gone (collection, record) VALUES (?, ?)').run(id, record)
    if (lexical) this.#postings.remove(id, record, defer)
    if (fullText)
      defer(() => this.#connection.prepare(`DELETE FROM ${textTable(id)} WHERE rowid = ?`).run(record))
    return bytes
  }

  /** Deletes the vectors of records from all spaces and generations. */
  #deleteVectors({ id }: CollectionRow, records: readonly number[]): void {
    if (records.length === 0) return
    this.#deleteRows('carried_vector', records)
    for (const space of listSpaces(this.#connection, id)) {
      const deleted = this.#deleteRows(vectorTable(space), records)
      if (space.staging) this.#deleteRows(stagingTable(space), records)
      this.#connection
        .prepare('UPDATE vector_space SET vectors = vectors - ? WHERE id = ?')
        .run(deleted, space.spaceId)
    }
  }

  /** Returns the number of deleted rows. */
  #deleteRows(table: string, records: readonly number[]): number {
    const statement = this.#connection.prepare(`DELETE FROM ${table} WHERE record = ?`)
    return records.reduce((deleted, record) => deleted + statement.run(record).changes, 0)
  }

  /** Deletes the row of a record, and returns its size. */
  #deleteRow(record: number): StoredBytes {
    return this.#connection
      .prepare<StoredBytes>(
        `DELETE FROM record WHERE record = ?
          RETURNING coalesce(octet_length(title), 0) + coalesce(octet_length(text), 0) AS text, octet_length(payload) AS payload`,
      )
      .get(record)!
  }

  /** Updates the version and the counts of a collection and its default space, and trims its deletion log if necessary. */
  #recordChange(
    collection: CollectionRow,
    { added, removed, growth }: { added: number; removed: readonly number[]; growth: StoredBytes },
  ): void {
    const removedUnfitted = removed.filter(record => record > collection.fittedThrough).length
    this.#connection
      .prepare(
        `UPDATE collection SET version = version + 1, records = records + ?, gone = gone + ?, text_bytes = text_bytes + ?,
            payload_bytes = payload_bytes + ?, changed_at = ?
          WHERE id = ?`,
      )
      .run(
        added - removed.length,
        removed.length,
        growth.text,
        growth.payload,
        this.#clock.now(),
        collection.id,
      )
    this.#connection
      .prepare('UPDATE vector_space SET vectors = vectors + ?, unfitted = unfitted + ? WHERE id = ?')
      .run(added, added - removedUnfitted, collection.spaceId)
    if (collection.loggedDeletions + removed.length > 2 * DELETIONS_LOGGED_MIN)
      this.#trimDeletionLog(collection.id)
  }

  #trimDeletionLog(collection: number): void {
    const { seq } = this.#connection
      .prepare<{ seq: number }>(
        'SELECT seq FROM record_gone WHERE collection = ? ORDER BY seq DESC LIMIT 1 OFFSET ?',
      )
      .get(collection, DELETIONS_LOGGED_MIN)!
    this.#connection.prepare('DELETE FROM record_gone WHERE collection = ? AND seq <= ?').run(collection, seq)
    this.#connection
      .prepare('UPDATE collection SET gone = ? WHERE id = ?')
      .run(DELETIONS_LOGGED_MIN, collection)
  }
}

export function createVectorTable(connection: SqliteConnection, table: string): void {
  connection.database.exec(`CREATE TABLE ${table} (record INTEGER PRIMARY KEY, data BLOB NOT NULL)`)
}

function renameVectorTable(connection: SqliteConnection, from: string, to: string): void {
  connection.database.exec(`ALTER TABLE ${from} RENAME TO ${to}`)
  connection.prepare('UPDATE quantized_vectors SET table_name = ? WHERE table_name = ?').run(to, from)
}

export function dropVectorTable(connection: SqliteConnection, table: string): void {
  connection.database.exec(`DROP TABLE IF EXISTS ${table}`)
  deleteQuantizedVectors(connection, table)
}

/** Rejects NaN and infinity, because a single one makes the order of search results undefined. */
export function requireFinite(vector: Float32Array): void {
  for (const value of vector)
    if (!Number.isFinite(value)) throw new RangeError('a vector contains a number that is not finite')
}
