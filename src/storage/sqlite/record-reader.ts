import {
  type CollectionKey,
  defaultSpace,
  type RecordOwner,
  type RecordView,
  type SpaceKey,
} from '../content.ts'
import { damagedStore } from '../damaged-store.ts'
import { createMatcher, matchesFilter } from '../filter.ts'
import { takeRecords } from '../record-length.ts'
import type { RecordSet } from '../record-set.ts'
import { requireSearchableSpace } from '../store-features.ts'
import type { Visibility } from '../visibility.ts'
import {
  type CollectionRow,
  decodePayload,
  decodeVector,
  findCollection,
  requireCollection,
  type VectorRow,
  vectorTable,
} from './collections.ts'
import type { SqliteConnection } from './connection.ts'

interface RecordRow {
  readonly record: number
  readonly id: string
  readonly documentId: string | null
  readonly chunkIndex: number | null
  readonly context: string | null
  readonly text: string | null
  readonly payload: string
}

const columns = 'record, id, document_id AS documentId, chunk_index AS chunkIndex, context, text, payload'

export interface DocumentQuery {
  readonly documentId: string
  readonly after?: { readonly chunkIndex: number | null; readonly id: string }
  readonly limit: number
  readonly charsMax?: number
  readonly visibility: Visibility
}

export interface DirectQuery {
  readonly after: number
  readonly limit: number
  readonly visibility: Visibility
}

/** Reads stored records. */
export class RecordReader {
  readonly #connection: SqliteConnection

  constructor(connection: SqliteConnection) {
    this.#connection = connection
  }

  /** @throws collection_unavailable  there is no such collection or space */
  read(
    key: SpaceKey,
    records: readonly number[],
    { vectors, visibility, charsMax }: { vectors: boolean; visibility: Visibility; charsMax?: number },
  ): RecordView[] {
    return this.#connection.snapshot(() => {
      const collection = requireCollection(this.#connection, key)
      if (vectors) requireSearchableSpace(key, collection.generation, undefined)
      const views = this.#visibleRecords(collection, records, visibility)
      return takeRecords(vectors ? this.#withVectors(collection, views) : views, { charsMax })
    })
  }

  *#visibleRecords(
    { id }: CollectionRow,
    records: readonly number[],
    visibility: Visibility,
  ): Generator<RecordView> {
    const isVisible = createMatcher(visibility.filter)
    const statement = this.#connection.prepare<RecordRow>(
      `SELECT ${columns} FROM record WHERE record = ? AND collection = ?`,
    )
    for (const record of records) {
      const row = statement.get(record, id)
      const view = row && decodeRecord(row)
      if (view && isVisible(view.payload)) yield view
    }
  }

  *#withVectors(collection: CollectionRow, views: Iterable<RecordView>): Generator<RecordView> {
    for (const view of views) {
      const vector = this.#vector(collection, view.record)
      yield vector ? { ...view, vector } : view
    }
  }

  owners(key: CollectionKey, ids: readonly string[], visibility: Visibility): RecordOwner[] {
    return this.#connection.snapshot(() => {
      const collection = findCollection(this.#connection, key)
      return ids.map(id =>
        collection
          ? ownerOfRecord(this.#connection, { collection: collection.id, id, visibility })
          : { id, documentId: null, exists: false, isVisible: true },
      )
    })
  }

  /**
   * Returns the records of a document, ordered by chunk index, then by ID. Records without a chunk index come last.
   *
   * @throws collection_unavailable  there is no such collection
   */
  listByDocument(key: CollectionKey, query: DocumentQuery): RecordView[] {
    return this.#connection.snapshot(() => {
      const { id } = requireCollection(this.#connection, key)
      return takeRecords(this.#visibleRecordsOf(id, query), query)
    })
  }

  *#visibleRecordsOf(
    collection: number,
    { documentId, after, visibility }: DocumentQuery,
  ): Generator<RecordView> {
    const isVisible = createMatcher(visibility.filter)
    for (const row of this.#rowsOf<RecordRow>(columns, { collection, documentId, after })) {
      const view = decodeRecord(row)
      if (isVisible(view.payload)) yield view
    }
  }

  /**
   * Returns the numbers of the first records of a document, in the order of {@link listByDocument}. Reads no payloads.
   *
   * @param allowedOf  returns the records to include; undefined for all records
   * @throws collection_unavailable  there is no such collection
   */
  numbersByDocument(
    key: CollectionKey,
    { documentId, limit }: { documentId: string; limit: number },
    allowedOf: (collection: CollectionRow) => RecordSet | undefined,
  ): number[] {
    return this.#connection.snapshot(() => {
      const collection = requireCollection(this.#connection, key)
      const allowed = allowedOf(collection)
      const numbers: number[] = []
      for (const { record } of this.#rowsOf<{ record: number }>('record', {
        collection: collection.id,
        documentId,
      })) {
        if (numbers.length === limit) break
        if (!allowed || allowed.has(record)) numbers.push(record)
      }
      return numbers
    })
  }

  *#rowsOf<Row>(
    selected: string,
    {
      collection,
      documentId,
      after,
    }: { collection: number; documentId: string; after?: DocumentQuery['after'] },
  ): Generator<Row> {
    for (const range of rangesAfter(after))
      yield* this.#connection
        .prepare<Row>(
          `SELECT ${selected} FROM record INDEXED BY record_by_document
            WHERE collection = ? AND document_id = ? AND ${range.where} ORDER BY chunk_index, id`,
        )
        .iterate(collection, documentId, ...range.values)
  }

  /**
   * Returns records without a document, in ascending order of their numbers.
   *
   * @throws collection_unavailable  there is no such collection
   */
  listDirect(key: CollectionKey, { after, limit, visibility }: DirectQuery): RecordView[] {
    return this.#connection.snapshot(() => {
      const { id } = requireCollection(this.#connection, key)
      const isVisible = createMatcher(visibility.filter)
      const rows = this.#connection
        .prepare<RecordRow>(
          `SELECT ${columns} FROM record INDEXED BY record_by_collection
            WHERE collection = ? AND record > ? AND document_id IS NULL ORDER BY record`,
        )
        .iterate(id, after)
      const views: RecordView[] = []
      for (const row of rows) {
        const view = decodeRecord(row)
        if (isVisible(view.payload)) views.push(view)
        if (views.length === limit) break
      }
      return views
    })
  }

  #vector(collection: CollectionRow, record: number): Float32Array | undefined {
    const table = vectorTable(collection)
    const row = this.#connection
      .prepare<VectorRow>(`SELECT record, data FROM ${table} WHERE record = ?`)
      .get(record)
    if (!row && collection.space !== defaultSpace) return undefined
    return decodeVector(table, collection.dimension, row ?? { record, data: null })
  }
}

/** Returns the owner of a record of a collection, which may be missing. */
export function ownerOfRecord(
  connection: SqliteConnection,
  { collection, id, visibility }: { collection: number; id: string; visibility: Visibility },
): RecordOwner {
  const { filter } = visibility
  const row = connection
    .prepare<{ record: number; documentId: string | null; payload: string }>(
      `SELECT record, document_id AS documentId${filter ? ', payload' : ''} FROM record WHERE collection = ? AND id = ?`,
    )
    .get(collection, id)
  const isVisible = !row || !filter || matchesFilter(filter, decodePayload(row))
  return { id, documentId: row?.documentId ?? null, exists: row !== undefined, isVisible }
}

/** Returns the index ranges that together contain the records after a position, in the order of the records. */
function rangesAfter(after: DocumentQuery['after']): { where: string; values: (number | string)[] }[] {
  const withoutIndex = 'chunk_index IS NULL'
  if (!after)
    return [
      { where: 'chunk_index IS NOT NULL', values: [] },
      { where: withoutIndex, values: [] },
    ]
  if (after.chunkIndex === null) return [{ where: `${withoutIndex} AND id > ?`, values: [after.id] }]
  return [
    { where: '(chunk_index, id) > (?, ?)', values: [after.chunkIndex, after.id] },
    { where: withoutIndex, values: [] },
  ]
}

/** @throws control_plane_unavailable  the record is damaged */
function decodeRecord(row: RecordRow): RecordView {
  const { record, id, documentId, chunkIndex, context, text } = row
  const isValid =
    typeof id === 'string' &&
    [documentId, context, text].every(value => value === null || typeof value === 'string') &&
    (chunkIndex === null || Number.isInteger(chunkIndex))
  if (!isValid) throw damagedStore(`row ${record} of record`)
  return { ...row, payload: decodePayload(row) }
}
