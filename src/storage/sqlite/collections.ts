import { WbError } from '../../contract/errors.ts'
import type { Collection, CollectionKey, Metric } from '../content.ts'
import type { Connection } from './connection.ts'

/** A collection as its row has it. */
export interface CollectionRow {
  readonly id: number
  readonly dimension: number
  readonly metric: Metric
  readonly lexical: 0 | 1
  readonly fitted: 0 | 1
  readonly generation: number
  readonly version: number
  readonly records: number
  readonly unfitted: number
  readonly fittedRecords: number
  /** Highest record that the model in force was fitted on. */
  readonly fittedThrough: number
  /** Whether vectors of the next generation are kept. */
  readonly staging: 0 | 1
  readonly leaseOwner: string | null
  readonly leaseUntil: number
  /** Entries of `record_gone`. */
  readonly gone: number
}

const columns = `id, dimension, metric, lexical, fitted, generation, version, records, unfitted,
  fitted_records AS fittedRecords, fitted_through AS fittedThrough, staging, lease_owner AS leaseOwner,
  lease_until AS leaseUntil, gone`

export function findCollection(connection: Connection, key: CollectionKey): CollectionRow | undefined {
  return connection
    .prepare<CollectionRow>(`SELECT ${columns} FROM collection WHERE workspace_id = ? AND name = ?`)
    .get(key.workspaceId, key.name)
}

/** @throws collection_unavailable  there is no such collection */
export function requireCollection(connection: Connection, key: CollectionKey): CollectionRow {
  const found = findCollection(connection, key)
  if (!found) throw new WbError('collection_unavailable', `collection '${key.name}' does not exist`)
  return found
}

/** @throws dimension_mismatch */
export function requireDimension(collection: CollectionRow, vector: Float32Array): void {
  if (vector.length !== collection.dimension)
    throw new WbError(
      'dimension_mismatch',
      `a vector of ${vector.length} numbers, where the collection has ${collection.dimension}`,
    )
}

export function describeCollection(connection: Connection, key: CollectionKey): Collection | undefined {
  const found = findCollection(connection, key)
  return found && described(key, found)
}

/** The collections of a workspace, by name. */
export function listCollections(connection: Connection, workspaceId: string): Collection[] {
  return connection
    .prepare<CollectionRow & { name: string }>(
      `SELECT name, ${columns} FROM collection WHERE workspace_id = ? ORDER BY name`,
    )
    .all(workspaceId)
    .map(found => described({ workspaceId, name: found.name }, found))
}

function described(key: CollectionKey, found: CollectionRow): Collection {
  const { id, dimension, metric, generation, version, records, fittedRecords } = found
  const { workspaceId, name } = key
  const [lexical, fitted] = [found.lexical === 1, found.fitted === 1]
  const made = { id, workspaceId, name, dimension, metric, lexical, fitted }
  return { ...made, generation, version, records, fittedRecords }
}

/** The table that holds the vectors of one generation. */
export function vectorTable(collection: number, generation: number): string {
  return `vec_${collection}_${generation}`
}

/** The full-text table of a collection. */
export function textTable(collection: number): string {
  return `fts_${collection}`
}

/** Floats as the bytes that are kept, without copying them. */
export function blobOf(vector: Float32Array): Buffer {
  return Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength)
}

/** The floats of kept bytes; a view of them where its place in memory allows. */
export function floatsOf(blob: Buffer): Float32Array {
  const length = blob.byteLength / Float32Array.BYTES_PER_ELEMENT
  if (blob.byteOffset % Float32Array.BYTES_PER_ELEMENT === 0)
    return new Float32Array(blob.buffer, blob.byteOffset, length)
  return new Float32Array(Uint8Array.from(blob).buffer, 0, length)
}
