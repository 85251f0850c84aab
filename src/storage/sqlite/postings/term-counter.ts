import { setImmediate } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import type { SqliteConnection } from '../connection.ts'
import { findActivePostingIndex } from './index-rows.ts'
import { listLiveSegments } from './segment-rows.ts'
import { TermCursor } from './term-cursor.ts'
import { TermSketch } from './term-sketch.ts'

/** A sketch takes 16 KB. */
const SKETCHES_CACHED_MAX = 512
/** Number of terms after which other work of the thread can run. */
const TERMS_AT_ONCE = 4_096
const ATTEMPTS_MAX = 5

/** Counts the distinct terms of posting indexes. Reads each segment once, because its terms never change. */
export class TermCounter {
  readonly #connection: SqliteConnection
  /** Sketches by segment, also while they are being computed. */
  readonly #sketches = new LRUCache<number, Promise<TermSketch | undefined>>({ max: SKETCHES_CACHED_MAX })

  constructor(connection: SqliteConnection) {
    this.#connection = connection
  }

  /**
   * Returns an estimate of the number of distinct terms of a collection. Includes terms of deleted records that are still
   * stored.
   *
   * @returns null if there is no index, or if merges replaced some of its segments during each of several attempts
   */
  async count(collection: number): Promise<number | null> {
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
      const index = findActivePostingIndex(this.#connection, collection)
      if (!index) return null
      const segments = listLiveSegments(this.#connection, index.id)
      const union = new TermSketch()
      let isComplete = true
      for (const { id } of segments) {
        const sketch = await this.#sketch(id)
        if (sketch) union.addAll(sketch)
        else isComplete = false
      }
      if (isComplete) return union.estimate()
    }
    return null
  }

  #sketch(segment: number): Promise<TermSketch | undefined> {
    let sketch = this.#sketches.get(segment)
    if (sketch) return sketch
    sketch = this.#read(segment)
    this.#sketches.set(segment, sketch)
    const forget = () => this.#sketches.delete(segment)
    sketch.then(found => found ?? forget(), forget)
    return sketch
  }

  /** Returns undefined if the segment is no longer live, because its blocks may have been deleted. */
  async #read(segment: number): Promise<TermSketch | undefined> {
    const sketch = new TermSketch()
    const cursor = new TermCursor(this.#connection, segment)
    for (let terms = 1; cursor.term !== undefined; terms++) {
      sketch.add(cursor.term)
      cursor.next()
      if (terms % TERMS_AT_ONCE === 0) await setImmediate()
    }
    const isLive = this.#connection
      .prepare('SELECT 1 FROM posting_segment WHERE id = ? AND state = 1')
      .get(segment)
    return isLive === undefined ? undefined : sketch
  }
}
