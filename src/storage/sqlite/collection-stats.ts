import type { CollectionBytes, CollectionKey, CollectionStats, LexicalIndexState } from '../content.ts'
import { type CollectionRow, findCollection, requireCollection } from './collections.ts'
import type { SqliteConnection } from './connection.ts'
import { listPostingIndexes, type PostingIndexRow } from './postings/index-rows.ts'
import { listLiveSegments, type PostingSegmentRow } from './postings/segment-rows.ts'

/** Bytes of a slot in `posting_slots`: record number and number of words. */
const SLOT_BYTES = 2 * Uint32Array.BYTES_PER_ELEMENT

interface StoredSums {
  readonly textBytes: number
  readonly payloadBytes: number
  readonly changedAt: number | null
  readonly vectorNumbers: number
}

interface IndexWithSegments {
  readonly index: PostingIndexRow
  readonly segments: readonly PostingSegmentRow[]
}

/** Statistics without the failure of the background work, which the writing thread knows. */
export type StoredStats = Omit<CollectionStats, 'index' | 'terms' | 'residentBytes'> & {
  readonly index: Omit<LexicalIndexState, 'failure'> | null
}

/**
 * Returns statistics of a collection, from sums that writes maintain. Reads no records.
 *
 * @throws collection_unavailable  there is no such collection
 */
export function readCollectionStats(connection: SqliteConnection, key: CollectionKey): StoredStats {
  return connection.snapshot(() => {
    const collection = requireCollection(connection, key)
    const indexes = readIndexes(connection, collection)
    const sums = readSums(connection, collection)
    return {
      records: collection.records,
      changedAt: sums.changedAt,
      bytes: sumBytes(sums, indexes),
      index: collection.lexical === 0 ? null : describeIndexes(indexes, collection),
    }
  })
}

/** Returns the bytes of several collections, in the order of the keys; undefined for a collection that does not exist. */
export function readCollectionBytes(
  connection: SqliteConnection,
  keys: readonly CollectionKey[],
): (CollectionBytes | undefined)[] {
  return connection.snapshot(() =>
    keys.map(key => {
      const collection = findCollection(connection, key)
      if (!collection) return undefined
      return sumBytes(readSums(connection, collection), readIndexes(connection, collection))
    }),
  )
}

function readSums(connection: SqliteConnection, { id }: CollectionRow): StoredSums {
  return connection
    .prepare<StoredSums>(
      `SELECT text_bytes AS textBytes, payload_bytes AS payloadBytes, changed_at AS changedAt,
          (SELECT sum(vectors * dimension) FROM vector_space WHERE collection = collection.id) AS vectorNumbers
        FROM collection WHERE id = ?`,
    )
    .get(id)!
}

function readIndexes(connection: SqliteConnection, { id }: CollectionRow): IndexWithSegments[] {
  return listPostingIndexes(connection, id).map(index => ({
    index,
    segments: listLiveSegments(connection, index.id),
  }))
}

function sumBytes(
  { textBytes, payloadBytes, vectorNumbers }: StoredSums,
  indexes: readonly IndexWithSegments[],
): CollectionBytes {
  const segments = indexes.flatMap(each => each.segments)
  return {
    text: textBytes,
    payload: payloadBytes,
    vectors: vectorNumbers * Float32Array.BYTES_PER_ELEMENT,
    postings: segments.reduce((sum, { bytes, slots }) => sum + bytes + slots * SLOT_BYTES, 0),
  }
}

function describeIndexes(
  indexes: readonly IndexWithSegments[],
  { reindex, records }: { reindex: 0 | 1; records: number },
): Omit<LexicalIndexState, 'failure'> {
  const active = indexes.find(({ index }) => index.active === 1)
  const filling = indexes.findLast(({ index }) => index.active === 0)
  const segments = active?.segments ?? []
  const slots = segments.reduce((sum, segment) => sum + segment.slots, 0)
  const deleted = segments.reduce((sum, segment) => sum + segment.deleted, 0)
  return {
    language: active?.index.language ?? null,
    generation: active?.index.generation ?? null,
    segments: segments.length,
    deletedShare: slots === 0 ? 0 : deleted / slots,
    isMerging: active?.index.mergeDue === 1,
    building:
      reindex === 0
        ? null
        : {
            records: filling ? countRecords(filling.segments) : 0,
            recordsTotal: records,
          },
  }
}

function countRecords(segments: readonly PostingSegmentRow[]): number {
  return segments.reduce((sum, { slots, deleted }) => sum + slots - deleted, 0)
}
