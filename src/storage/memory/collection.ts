import { isDeepStrictEqual } from 'node:util'
import { systemClock } from '../../base/clock.ts'
import {
  type Collection,
  type CollectionBytes,
  type ContentRecord,
  type ContentWrite,
  defaultSpace,
  type Metric,
  type RecordOwner,
  type RecordVector,
} from '../content.ts'
import { matchesFilter } from '../filter.ts'
import type { WriteFailure } from '../rows.ts'
import { requireVectorDimension } from '../store-features.ts'
import type { Visibility } from '../visibility.ts'

/** A stored record. Its vectors are in the vector spaces. */
export interface MemoryRecord extends Omit<ContentRecord, 'vector'> {
  readonly record: number
}

type VectorsByRecord = ReadonlyMap<number, Float32Array>

/** A vector space. Immutable: a change replaces it. */
export interface MemorySpace {
  readonly dimension: number
  readonly metric: Metric
  readonly generation: number
  /** Vectors of the current generation. */
  readonly vectors: VectorsByRecord
  /** Vectors of the next generation; undefined if nothing was staged. */
  readonly staged: VectorsByRecord | undefined
  /** Vectors that records got from the records that they replaced; see `UnstagedPassage`. */
  readonly carried: VectorsByRecord
  /** Highest record number that `stage` or `swap` has added to the current generation. */
  readonly filledThrough: number
  readonly lease: { readonly owner: string; readonly until: number } | undefined
}

/** A collection, with its records by ID and its vector spaces by name. Immutable: a write replaces it. */
export interface MemoryCollection {
  readonly collection: Omit<Collection, 'dimension' | 'metric' | 'generation' | 'vectors'>
  readonly records: ReadonlyMap<string, MemoryRecord>
  readonly spaces: ReadonlyMap<string, MemorySpace>
  /** Time of the last change of a record in milliseconds since 1970. */
  readonly changedAt: number | null
}

/** Returns the bytes of all records and vectors. A store in memory has no postings. */
export function sumBytes({ records, spaces }: MemoryCollection): CollectionBytes {
  const bytes = { text: 0, payload: 0, vectors: 0, postings: 0 }
  for (const { vectors, dimension } of spaces.values())
    bytes.vectors += vectors.size * dimension * Float32Array.BYTES_PER_ELEMENT
  for (const { title, text, payload } of records.values()) {
    bytes.text += Buffer.byteLength(title ?? '') + Buffer.byteLength(text ?? '')
    bytes.payload += Buffer.byteLength(JSON.stringify(payload))
  }
  return bytes
}

/** Returns the owner of a record, which may be missing. */
export function ownerOf(
  entry: MemoryCollection | undefined,
  id: string,
  { filter }: Visibility,
): RecordOwner {
  const record = entry?.records.get(id)
  const isVisible = !record || matchesFilter(filter, record.payload)
  return { id, documentId: record?.documentId ?? null, exists: record !== undefined, isVisible }
}

/** Returns the collection, or `stale` if the owners of its records differ from the given ones. */
export function checkOwners(
  entry: MemoryCollection,
  { owners, visibility }: Extract<ContentWrite, { op: 'requireOwners' }>,
): MemoryCollection | WriteFailure {
  const areUnchanged = owners.every(owner => isDeepStrictEqual(ownerOf(entry, owner.id, visibility), owner))
  return areUnchanged ? entry : 'stale'
}

/** Returns the unchanged collection, or `stale` if one of the records no longer exists. */
export function checkRecords(
  entry: MemoryCollection,
  { records }: Extract<ContentWrite, { op: 'requireRecords' }>,
): MemoryCollection | WriteFailure {
  const existing = recordNumbers(entry.records)
  return records.every(record => existing.has(record)) ? entry : 'stale'
}

/** Returns a new vector space. */
export function emptySpace({
  dimension,
  metric,
  isSearchable = false,
}: {
  dimension: number
  metric: Metric
  isSearchable?: boolean
}): MemorySpace {
  const generation = isSearchable ? 1 : 0
  const vectors = new Map()
  const missing = { staged: undefined, lease: undefined }
  return { dimension, metric, generation, vectors, carried: new Map(), filledThrough: 0, ...missing }
}

/** Returns a space with other vectors in its current generation. */
export function filledSpace(space: MemorySpace, vectors: VectorsByRecord): MemorySpace {
  const filledThrough = [...vectors.keys()].reduce((a, b) => Math.max(a, b), space.filledThrough)
  return { ...space, vectors, filledThrough }
}

/** Adds vectors of the records that exist, except those that have one. */
export function withVectors(
  before: VectorsByRecord = new Map(),
  { records }: MemoryCollection,
  added: readonly RecordVector[],
): VectorsByRecord {
  const existing = recordNumbers(records)
  const vectors = new Map(before)
  for (const { record, vector } of added)
    if (existing.has(record) && !vectors.has(record)) vectors.set(record, Float32Array.from(vector))
  return vectors
}

function recordNumbers(records: MemoryCollection['records']): ReadonlySet<number> {
  return new Set([...records.values()].map(({ record }) => record))
}

/** Replaces the records, and removes the vectors of records that are gone from all spaces. */
export function withRecords(
  { collection, spaces }: MemoryCollection,
  records: ReadonlyMap<string, MemoryRecord>,
): MemoryCollection {
  const existing = recordNumbers(records)
  const remaining = (vectors: VectorsByRecord) =>
    new Map([...vectors].filter(([record]) => existing.has(record)))
  return {
    collection: { ...collection, version: collection.version + 1, records: records.size },
    records,
    spaces: new Map(
      [...spaces].map(([name, space]) => {
        const staged = space.staged && remaining(space.staged)
        return [
          name,
          { ...space, vectors: remaining(space.vectors), carried: remaining(space.carried), staged },
        ]
      }),
    ),
    changedAt: systemClock.now(),
  }
}

/**
 * Gives vectors of deleted records to new records with the same title, context and text. Vectors of the default space are not included.
 *
 * @param before  the collection before the transaction that deleted and added records
 */
export function withCarried(before: MemoryCollection | undefined, entry: MemoryCollection): MemoryCollection {
  if (before?.collection.id !== entry.collection.id) return entry
  const passageOf = ({ title, context = null, text }: MemoryRecord) => JSON.stringify([title, context, text])
  const [old, current] = [recordNumbers(before.records), recordNumbers(entry.records)]
  const deleted = [...before.records.values()].filter(({ record }) => !current.has(record))
  const added = [...entry.records.values()].filter(({ record }) => !old.has(record))
  const spaces = [...entry.spaces].map(([name, space]) => {
    const previous = before.spaces.get(name)
    if (name === defaultSpace || !previous || space.generation === 0) return [name, space] as const
    const vectorOf = (record: number) => previous.vectors.get(record) ?? previous.carried.get(record)
    const vectors = new Map(
      deleted.flatMap(record => {
        const vector = vectorOf(record.record)
        return vector ? [[passageOf(record), vector] as const] : []
      }),
    )
    const carried = new Map(space.carried)
    for (const record of added) {
      const vector = vectors.get(passageOf(record))
      if (vector) carried.set(record.record, vector)
    }
    return [name, { ...space, carried }] as const
  })
  return { ...entry, spaces: new Map(spaces) }
}

/** Removes records with their vectors. */
export function withoutRecords(
  entry: MemoryCollection,
  isRemoved: (record: MemoryRecord) => boolean,
): MemoryCollection {
  const remaining = [...entry.records].filter(([, record]) => !isRemoved(record))
  return remaining.length === entry.records.size ? entry : withRecords(entry, new Map(remaining))
}

/**
 * @throws dimension_mismatch  the length of the vector is not the dimension of the space
 * @throws RangeError          a number is not finite
 */
export function requireVector(space: MemorySpace, vector: Float32Array): void {
  requireVectorDimension(space, vector)
  if (!vector.every(Number.isFinite)) throw new RangeError('a vector contains a number that is not finite')
}

/** Makes another space the default one; returns `stale` if a record has no vector in it. */
export function withPromotedSpace(entry: MemoryCollection, name: string): MemoryCollection | WriteFailure {
  const space = entry.spaces.get(name)
  if (name === defaultSpace) throw new RangeError('the default space is already the default')
  if (!space) return 'absent'
  if (space.vectors.size < entry.records.size) return 'stale'
  const generation = entry.spaces.get(defaultSpace)!.generation + 1
  const promoted = { ...space, generation, carried: new Map(), lease: undefined }
  const others = [...entry.spaces].filter(([other]) => other !== name && other !== defaultSpace)
  const version = entry.collection.version + 1
  return {
    ...entry,
    collection: { ...entry.collection, fitted: false, version },
    spaces: new Map<string, MemorySpace>([[defaultSpace, promoted], ...others]),
  }
}
