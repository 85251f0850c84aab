import { LRUCache } from 'lru-cache'
import type { SqliteConnection } from '../connection.ts'
import type { PostingList } from './posting-list.ts'
import { findPostings } from './term-blocks.ts'

const POSTING_BYTES_MAX = 48 * 1024 * 1024
/** Estimated bytes of an entry in addition to its numbers. */
const ENTRY_OVERHEAD_BYTES = 400

/** Caches decoded posting lists, and also that a segment does not contain a term. The terms of a segment never change. */
export class PostingCache {
  readonly #connection: SqliteConnection
  readonly #lists: LRUCache<string, PostingList | typeof absent>

  constructor(connection: SqliteConnection, bytesMax = POSTING_BYTES_MAX) {
    this.#connection = connection
    this.#lists = new LRUCache({ maxSize: bytesMax, sizeCalculation: sizeOf })
  }

  /** Returns the postings of a stored term; undefined if no record of the segment contains it. */
  get(segment: number, term: string): PostingList | undefined {
    const key = `${segment} ${term}`
    let list = this.#lists.get(key)
    if (!list) {
      list = findPostings(this.#connection, segment, Buffer.from(term, 'latin1')) ?? absent
      this.#lists.set(key, list)
    }
    return list === absent ? undefined : (list as PostingList)
  }

  /** Estimated bytes of memory in use. */
  get bytes(): number {
    return this.#lists.calculatedSize
  }
}

const absent = Symbol('absent')

function sizeOf(list: PostingList | typeof absent): number {
  if (list === absent) return ENTRY_OVERHEAD_BYTES
  const { slots, textCounts, titleCounts } = list as PostingList
  return ENTRY_OVERHEAD_BYTES + slots.byteLength + textCounts.byteLength + (titleCounts?.byteLength ?? 0)
}
