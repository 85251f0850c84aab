import { WbError } from '../../contract/errors.ts'
import type { Collection, CollectionKey, Metric, Payload } from '../content.ts'
import { damagedStore } from '../damaged-store.ts'
import { collectionMissing } from '../store-features.ts'
import type { SqliteConnection } from './connection.ts'

/** A row of the `collection` table. */
export interface CollectionRow {
  readonly id: number
  readonly dimension: number
  readonly metric: Metric
  readonly lexical: 0 | 1
  /** Language setting of lexical search; null for the default. */
  readonly language: string | null
  /** 1 if there is a full-text table of an earlier schema. */
  readonly fullText: 0 | 1
  /** 1 if the posting index is missing or was made with other rules. */
  readonly reindex: 0 | 1
  readonly fitted: 0 | 1
  readonly generation: number
  readonly version: number
  readonly records: number
  readonly unfitted: number
  readonly fittedRecords: number
  /** Highest record number that the current model was fitted to. */
  readonly fittedThrough: number
  /** 1 if there is a table for the vectors of the next generation. */
  readonly staging: 0 | 1
  readonly leaseOwner: string | null
  readonly leaseUntil: number
  /** Number of rows in `record_gone`. */
  readonly loggedDeletions: number
}

export const metrics: readonly Metric[] = ['cosine', 'dot', 'euclidean']

const columns = `id, dimension, metric, lexical, language, full_text AS fullText, reindex, fitted, generation, version, records, unfitted,
  fitted_records AS fittedRecords, fitted_through AS fittedThrough, staging, lease_owner AS leaseOwner,
  lease_until AS leaseUntil, gone AS loggedDeletions`

/** @throws control_plane_unavailable  the row of the collection is damaged */
export function findCollection(connection: SqliteConnection, key: CollectionKey): CollectionRow | undefined {
  const row = connection
    .prepare<CollectionRow>(`SELECT ${columns} FROM collection WHERE workspace_id = ? AND name = ?`)
    .get(key.workspaceId, key.name)
  return row && requireValid(row)
}

function requireValid(row: CollectionRow): CollectionRow {
  const { leaseOwner, metric, language, ...numbers } = row
  const isValid =
    Object.values(numbers).every(Number.isSafeInteger) &&
    row.dimension > 0 &&
    metrics.includes(metric) &&
    [leaseOwner, language].every(value => value === null || typeof value === 'string')
  if (!isValid) throw damagedStore(`row ${row.id} of collection`)
  return row
}

/** @throws collection_unavailable  there is no such collection */
export function requireCollection(connection: SqliteConnection, key: CollectionKey): CollectionRow {
  const row = findCollection(connection, key)
  if (!row) throw collectionMissing(key)
  return row
}

/** @throws dimension_mismatch  the length of the vector is not the dimension of the collection */
export function requireVectorDimension(collection: CollectionRow, vector: Float32Array): void {
  if (vector.length !== collection.dimension)
    throw new WbError(
      'dimension_mismatch',
      `the vector has ${vector.length} numbers, but the collection requires ${collection.dimension}`,
    )
}

export function describeCollection(connection: SqliteConnection, key: CollectionKey): Collection | undefined {
  const row = findCollection(connection, key)
  return row && toCollection(key, row)
}

/** Returns the collections of a workspace, by name. */
export function listCollections(connection: SqliteConnection, workspaceId: string): Collection[] {
  return connection
    .prepare<CollectionRow & { name: string }>(
      `SELECT name, ${columns} FROM collection WHERE workspace_id = ? ORDER BY name`,
    )
    .all(workspaceId)
    .map(({ name, ...row }) => toCollection({ workspaceId, name }, requireValid(row)))
}

function toCollection({ workspaceId, name }: CollectionKey, row: CollectionRow): Collection {
  const { id, dimension, metric, generation, version, records, fittedRecords } = row
  const settings = { dimension, metric, lexical: row.lexical === 1, fitted: row.fitted === 1 }
  return { id, workspaceId, name, ...settings, generation, version, records, fittedRecords }
}

/** Returns the name of the table with the vectors of one generation. */
export function vectorTable(collection: number, generation: number): string {
  return `vec_${collection}_${generation}`
}

/** Returns the name of the full-text table of a collection that an earlier schema created. */
export function textTable(collection: number): string {
  return `fts_${collection}`
}

/** A row of a vector table. */
export interface VectorRow {
  readonly record: number
  /** Null if the vector is missing. */
  readonly data: Buffer | null
}

/** @throws control_plane_unavailable  the vector is missing or damaged */
export function decodeVector(table: string, dimension: number, { record, data }: VectorRow): Float32Array {
  if (!Buffer.isBuffer(data) || data.length !== dimension * Float32Array.BYTES_PER_ELEMENT)
    throw damagedStore(`row ${record} of ${table}`)
  return floatsOf(data)
}

/** Returns the stored bytes of a vector, without copying them. */
export function encodeVector(vector: Float32Array): Buffer {
  return Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength)
}

/** Returns stored bytes as floats: a view if their alignment allows it, and a copy otherwise. */
function floatsOf(blob: Buffer): Float32Array {
  const length = blob.byteLength / Float32Array.BYTES_PER_ELEMENT
  if (blob.byteOffset % Float32Array.BYTES_PER_ELEMENT === 0)
    return new Float32Array(blob.buffer, blob.byteOffset, length)
  return new Float32Array(Uint8Array.from(blob).buffer, 0, length)
}

/** @throws control_plane_unavailable  the payload is damaged */
export function decodePayload({ record, payload }: { record: number; payload: string }): Payload {
  let parsed: unknown
  try {
    parsed = JSON.parse(payload)
  } catch (error) {
    throw damagedStore(`row ${record} of record`, error)
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed))
    throw damagedStore(`row ${record} of record`)
  return parsed as Payload
}
