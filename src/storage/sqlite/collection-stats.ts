import { LRUCache } from 'lru-cache'
import type { CollectionKey, CollectionStats, LexicalIndexState } from '../content.ts'
import { requireCollection } from './collections.ts'
import type { SqliteConnection } from './connection.ts'
import { listPostingIndexes, type PostingIndexRow } from './postings/index-rows.ts'
import { liveSegments, type PostingSegmentRow } from './postings/segment-rows.ts'

/** Number of segments whose sizes are cached. A collection of a million records has about 60. */
const SEGMENTS_CACHED_MAX = 10_000

interface StatsRow {
  readonly textBytes: number
  readonly payloadBytes: number
  readonly changedAt: number | null
  readonly vectorNumbers: number
}

/** Statistics without the failure of the background work, which the writing thread knows. */
export type StoredStats = Omit<CollectionStats, 'index'> & {
  readonly index: Omit<LexicalIndexState, 'failure'> | null
}

/** Reads statistics of collections, from stored sums and the sizes of immutable segments. Reads no records. */
export class CollectionStatsReader {
  readonly #connection: SqliteConnection
  /** Bytes of the posting blocks by segment. A live segment never changes. */
  readonly #segmentBytes = new LRUCache<number, number>({ max: SEGMENTS_CACHED_MAX })

  constructor(connection: SqliteConnection) {
    this.#connection = connection
  }

  /** @throws collection_unavailable  there is no such collection */
  stats(key: CollectionKey): StoredStats {
    return this.#connection.snapshot(() => this.#read(key))
  }

  #read(key: CollectionKey): StoredStats {
    const collection = requireCollection(this.#connection, key)
    const row = this.#connection
      .prepare<StatsRow>(
        `SELECT text_bytes AS textBytes, payload_bytes AS payloadBytes, changed_at AS changedAt,
            (SELECT sum(vectors * dimension) FROM vector_space WHERE collection = collection.id) AS vectorNumbers
          FROM collection WHERE id = ?`,
      )
      .get(collection.id)!
    const indexes = listPostingIndexes(this.#connection, collection.id).map(index => ({
      index,
      segments: liveSegments(this.#connection, index.id),
    }))
    const segments = indexes.flatMap(each => each.segments)
    return {
      records: collection.records,
      changedAt: row.changedAt,
      bytes: {
        text: row.textBytes,
        payload: row.payloadBytes,
        vectors: row.vectorNumbers * Float32Array.BYTES_PER_ELEMENT,
        postings: segments.reduce((sum, segment) => sum + this.#bytesOf(segment), 0),
      },
      index: collection.lexical === 0 ? null : describeIndexes(indexes, collection),
    }
  }

  /** Returns the bytes of the postings of a segment, without its lists of records and words. */
  #bytesOf({ id, slots }: PostingSegmentRow): number {
    let bytes = this.#segmentBytes.get(id)
    if (bytes === undefined) {
      bytes = this.#connection
        .prepare<{ bytes: number }>(
          'SELECT coalesce(sum(octet_length(data) + octet_length(first_term)), 0) AS bytes FROM posting_block WHERE segment = ?',
        )
        .get(id)!.bytes
      this.#segmentBytes.set(id, bytes)
    }
    return bytes + slots * SLOT_BYTES
  }
}

/** Bytes of a slot in `posting_slots`: record number and number of words. */
const SLOT_BYTES = 2 * Uint32Array.BYTES_PER_ELEMENT

interface IndexWithSegments {
  readonly index: PostingIndexRow
  readonly segments: readonly PostingSegmentRow[]
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
