import type { SqliteConnection } from '../connection.ts'
import { ByteWriter } from './byte-writer.ts'
import { damagedBlock, decodePostings, PostingCursor, type PostingList } from './posting-list.ts'
import { SEGMENT_SLOTS_MAX } from './schema.ts'
import { TERM_BYTES_MAX } from './term-key.ts'

/**
 * Target size of a block. A block of this size, its first term and the headers fit into one page of the database file. A
 * block with a single term can be larger.
 */
const BLOCK_BYTES = 3_800

/**
 * Packs the terms of a segment into rows of `posting_block`. Terms are added in ascending order.
 *
 * A block is a sequence of entries, one per term: length of the term, term, number of postings, length of the postings in
 * bytes, postings. All numbers are varints.
 */
export class BlockPacker {
  readonly #connection: SqliteConnection
  readonly #segment: number
  readonly #block = new ByteWriter()
  #first: string | undefined
  /** Bytes of the blocks and first terms stored so far. */
  storedBytes = 0

  constructor(connection: SqliteConnection, segment: number) {
    this.#connection = connection
    this.#segment = segment
  }

  /**
   * Adds a term.
   *
   * @param term   stored form of the term
   * @param count  number of postings
   */
  add(term: string, count: number, postings: ByteWriter): void {
    if (this.#block.length + term.length + postings.length > BLOCK_BYTES) this.flush()
    this.#first ??= term
    this.#block.appendVarint(term.length)
    this.#block.appendLatin1(term)
    this.#block.appendVarint(count)
    this.#block.appendVarint(postings.length)
    this.#block.append(postings)
  }

  /** Stores the terms added since the last block. */
  flush(): void {
    if (this.#first === undefined) return
    this.#connection
      .prepare('INSERT INTO posting_block (segment, first_term, data) VALUES (?, ?, ?)')
      .run(this.#segment, Buffer.from(this.#first, 'latin1'), this.#block.bytes)
    this.storedBytes += this.#block.length + this.#first.length
    this.#block.clear()
    this.#first = undefined
  }
}

/** Reads the terms of one block in ascending order, from the first to the last. */
export class TermBlockReader {
  readonly #data: Buffer
  readonly #segment: number
  #at = 0
  /** Number of postings of the current term. */
  count = 0
  #termStart = 0
  #termEnd = 0
  #postingsEnd = 0

  constructor(segment: number, data: Buffer) {
    this.#segment = segment
    this.#data = data
  }

  /**
   * Moves to the next term; returns false after the last one.
   *
   * @throws control_plane_unavailable  the block is damaged
   */
  next(): boolean {
    this.#at = this.#postingsEnd
    if (this.#at >= this.#data.length) return false
    const termBytes = this.#varint()
    this.#termStart = this.#at
    this.#at += termBytes
    this.#termEnd = this.#at
    this.count = this.#varint()
    const postingsBytes = this.#varint()
    this.#postingsEnd = this.#at + postingsBytes
    const isValid =
      termBytes <= TERM_BYTES_MAX &&
      this.#postingsEnd <= this.#data.length &&
      this.count > 0 &&
      this.count <= Math.min(postingsBytes, SEGMENT_SLOTS_MAX)
    if (!isValid) throw damagedBlock(this.#segment)
    return true
  }

  get term(): string {
    return this.#data.toString('latin1', this.#termStart, this.#termEnd)
  }

  /** Moves forward to a term; returns false if none of the remaining terms is equal. */
  find(term: Buffer): boolean {
    while (this.next()) {
      const order = this.#data.compare(term, 0, term.length, this.#termStart, this.#termEnd)
      if (order >= 0) return order === 0
    }
    return false
  }

  get postingsBytes(): number {
    return this.#postingsEnd - this.#at
  }

  /** Returns a reader of the postings of the current term. */
  openPostings(): PostingCursor {
    return new PostingCursor(this.#segment, this.#data, this.#at, this.#postingsEnd)
  }

  /** @throws control_plane_unavailable  the block is damaged */
  decode(): PostingList {
    return decodePostings(this.openPostings(), this.count)
  }

  #varint(): number {
    let value = 0
    for (let shift = 0; shift < 28; shift += 7) {
      const byte = this.#data[this.#at++]
      if (byte === undefined) throw damagedBlock(this.#segment)
      value |= (byte & 127) << shift
      if (byte < 128) break
    }
    return value
  }
}

/** Returns the postings of a term in a segment; undefined if no record of it contains the term. */
export function findPostings(
  connection: SqliteConnection,
  segment: number,
  term: Buffer,
): PostingList | undefined {
  const found = connection
    .prepare<{ data: Buffer }>(
      'SELECT data FROM posting_block WHERE segment = ? AND first_term <= ? ORDER BY first_term DESC LIMIT 1',
    )
    .get(segment, term)
  if (!found) return undefined
  const block = new TermBlockReader(segment, found.data)
  return block.find(term) ? block.decode() : undefined
}
