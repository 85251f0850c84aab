import type { SqliteConnection } from '../connection.ts'
import { TermBlockReader } from './term-blocks.ts'

const BLOCKS_READ_AT_ONCE = 8

interface BlockRow {
  readonly first: Buffer
  readonly data: Buffer
}

/**
 * Reads the terms of a segment in ascending order. Reads the first block alone, because most callers need few terms, and
 * then several blocks at a time.
 */
export class TermCursor {
  readonly segment: number
  readonly #connection: SqliteConnection
  #rows: BlockRow[]
  #at = 0
  #block: TermBlockReader
  /** The current term; undefined after the last one. */
  term: string | undefined

  /** @param from  the first term, or the next one if the segment does not contain it */
  constructor(connection: SqliteConnection, segment: number, from = '') {
    this.segment = segment
    this.#connection = connection
    const start = Buffer.from(from, 'latin1')
    this.#rows = connection
      .prepare<BlockRow>(
        `SELECT first_term AS first, data FROM posting_block WHERE segment = ? AND first_term >= coalesce(
          (SELECT max(first_term) FROM posting_block WHERE segment = ? AND first_term <= ?), ?)
          ORDER BY first_term LIMIT 1`,
      )
      .all(segment, segment, start, start)
    this.#block = this.#openBlock()
    do this.next()
    while (this.term !== undefined && this.term < from)
  }

  /** The block at the current term, to read its postings. */
  get block(): TermBlockReader {
    return this.#block
  }

  next(): void {
    while (!this.#block.next()) {
      if (++this.#at >= this.#rows.length && !this.#readMore()) {
        this.term = undefined
        return
      }
      this.#block = this.#openBlock()
    }
    this.term = this.#block.term
  }

  #openBlock(): TermBlockReader {
    return new TermBlockReader(this.segment, this.#rows[this.#at]?.data ?? Buffer.alloc(0))
  }

  #readMore(): boolean {
    const last = this.#rows.at(-1)
    if (!last) return false
    this.#rows = this.#connection
      .prepare<BlockRow>(
        `SELECT first_term AS first, data FROM posting_block WHERE segment = ? AND first_term > ?
          ORDER BY first_term LIMIT ${BLOCKS_READ_AT_ONCE}`,
      )
      .all(this.segment, last.first)
    this.#at = 0
    return this.#rows.length > 0
  }
}

/**
 * Yields the terms of several segments in ascending order, each with the cursors of the segments that contain it, in the
 * order of `cursors`. The cursors move when the generator continues.
 */
export function* mergeTerms(
  cursors: readonly TermCursor[],
): Generator<{ readonly term: string; readonly parts: readonly TermCursor[] }, void, undefined> {
  for (;;) {
    let term: string | undefined
    for (const cursor of cursors)
      if (cursor.term !== undefined && (term === undefined || cursor.term < term)) term = cursor.term
    if (term === undefined) return
    const parts = cursors.filter(cursor => cursor.term === term)
    yield { term, parts }
    for (const cursor of parts) cursor.next()
  }
}
