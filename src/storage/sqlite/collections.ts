import {
  type Collection,
  type CollectionKey,
  defaultSpace,
  type Metric,
  type Payload,
  type SpaceKey,
} from '../content.ts'
import { damagedStore } from '../damaged-store.ts'
import { collectionMissing } from '../store-features.ts'
import type { SqliteConnection } from './connection.ts'

/** A row of the `collection` table, joined with the row of one of its spaces in `vector_space`. */
export interface CollectionRow extends SpaceTables {
  readonly id: number
  readonly space: string
  readonly dimension: number
  readonly metric: Metric
  readonly lexical: 0 | 1
  /** Language setting of lexical search; null for the default. */
  readonly language: string | null
  /** 1 if there is a full-text table of an earlier schema. */
  readonly fullText: 0 | 1
  /** 1 if the posting index is missing, or was built for another language or analyzer version. */
  readonly reindex: 0 | 1
  readonly fitted: 0 | 1
  readonly version: number
  readonly records: number
  /** Number of vectors in the current generation. */
  readonly vectors: number
  /** Highest record number that `stage` or `swap` has added to the current generation. */
  readonly filledThrough: number
  readonly unfitted: number
  readonly fittedRecords: number
  /** Highest record number that the current model was fitted to. */
  readonly fittedThrough: number
  readonly leaseOwner: string | null
  readonly leaseUntil: number
  /** Number of rows in `record_gone`. */
  readonly loggedDeletions: number
}

/** Columns of `vector_space` that determine the names of its vector tables. */
export interface SpaceTables {
  readonly spaceId: number
  readonly generation: number
  /** 1 if there is a table for the vectors of the next generation. */
  readonly staging: 0 | 1
}

export const metrics: readonly Metric[] = ['cosine', 'dot', 'euclidean']

const columns = `collection.id, lexical, language, full_text AS fullText, reindex, version, records, gone AS loggedDeletions,
  vector_space.id AS spaceId, vector_space.name AS space, dimension, metric, fitted, generation, vectors,
  filled_through AS filledThrough, unfitted, fitted_records AS fittedRecords, fitted_through AS fittedThrough, staging,
  lease_owner AS leaseOwner, lease_until AS leaseUntil
  FROM collection JOIN vector_space ON vector_space.collection = collection.id`

/** @throws control_plane_unavailable  the row of the collection or of the space is damaged */
export function findCollection(connection: SqliteConnection, key: SpaceKey): CollectionRow | undefined {
  const row = connection
    .prepare<CollectionRow>(
      `SELECT ${columns} WHERE workspace_id = ? AND collection.name = ? AND vector_space.name = ?`,
    )
    .get(key.workspaceId, key.name, key.space ?? defaultSpace)
  return row && requireValid(row)
}

function requireValid(row: CollectionRow): CollectionRow {
  const { leaseOwner, metric, language, space: _, ...numbers } = row
  const isValid =
    Object.values(numbers).every(Number.isSafeInteger) &&
    row.dimension > 0 &&
    metrics.includes(metric) &&
    [leaseOwner, language].every(value => value === null || typeof value === 'string')
  if (!isValid) throw damagedStore(`row ${row.id} of collection`)
  return row
}

/** @throws collection_unavailable  there is no such collection or space */
export function requireCollection(connection: SqliteConnection, key: SpaceKey): CollectionRow {
  const row = findCollection(connection, key)
  if (!row) throw collectionMissing(key)
  return row
}

export function describeCollection(connection: SqliteConnection, key: SpaceKey): Collection | undefined {
  const row = findCollection(connection, key)
  return row && toCollection(key, row)
}

/** Returns the collections of a workspace with their default spaces, by name. */
export function listCollections(connection: SqliteConnection, workspaceId: string): Collection[] {
  return connection
    .prepare<CollectionRow & { name: string }>(
      `SELECT collection.name, ${columns} WHERE workspace_id = ? AND vector_space.name = ? ORDER BY collection.name`,
    )
    .all(workspaceId, defaultSpace)
    .map(({ name, ...row }) => toCollection({ workspaceId, name }, requireValid(row)))
}

function toCollection({ workspaceId, name }: CollectionKey, row: CollectionRow): Collection {
  const { id, dimension, metric, generation, version, records, vectors, fittedRecords } = row
  const settings = { dimension, metric, lexical: row.lexical === 1, fitted: row.fitted === 1 }
  const isModelOutdated = settings.fitted && generation > 0 && row.fittedThrough === 0
  const vectorsThrough = row.space === defaultSpace ? 0 : row.filledThrough
  const counts = { records, vectors, vectorsThrough, fittedRecords }
  return { id, workspaceId, name, ...settings, generation, version, ...counts, isModelOutdated }
}

/** Returns the vector spaces of a collection. */
export function listSpaces(connection: SqliteConnection, collection: number): SpaceTables[] {
  return connection
    .prepare<SpaceTables>(
      'SELECT id AS spaceId, generation, staging FROM vector_space WHERE collection = ? ORDER BY id',
    )
    .all(collection)
}

/** Returns the name of the table with the vectors of a generation. */
export function vectorTable({ spaceId, generation }: Omit<SpaceTables, 'staging'>): string {
  return `vec_${spaceId}_${generation}`
}

/** Returns the name of the table with the vectors of the next generation. */
export function stagingTable({ spaceId, generation }: SpaceTables): string {
  return vectorTable({ spaceId, generation: generation + 1 })
}

/** Returns the names of the tables of a space. */
export function tablesOfSpace(space: SpaceTables): string[] {
  return [vectorTable(space), ...(space.staging ? [stagingTable(space)] : [])]
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
