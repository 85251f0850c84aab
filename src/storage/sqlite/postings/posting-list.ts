import type { WbError } from '../../../contract/errors.ts'
import { damagedStore } from '../../damaged-store.ts'
import type { ByteWriter } from './byte-writer.ts'
import { SEGMENT_SLOTS_MAX } from './schema.ts'

/** Maximum count of a term in the title or text of a record. Higher counts are stored as this one. */
export const TERM_COUNT_MAX = 65_535

/** The records of a segment that contain a term, by ascending slot. */
export interface PostingList {
  readonly slots: Uint16Array
  /** Occurrences in the text of each record. */
  readonly textCounts: Uint16Array
  /** Occurrences in the title of each record; undefined if the term is in no title. */
  readonly titleCounts: Uint16Array | undefined
}

// A posting starts with a varint. Its two low bits are one of the following forms of counts; the other bits are the number
// of slots between the previous posting and this one. The counts follow in the forms `TEXT_COUNT` and `BOTH_COUNTS`.
const ONCE_IN_TEXT = 0
const TWICE_IN_TEXT = 1
const TEXT_COUNT = 2
const BOTH_COUNTS = 3

/**
 * Appends one posting.
 *
 * @param previous  slot of the previous posting; -1 for the first posting
 */
export function writePosting(
  writer: ByteWriter,
  previous: number,
  slot: number,
  textCount: number,
  titleCount: number,
): void {
  const gap = (slot - previous - 1) << 2
  if (titleCount > 0) {
    writer.appendVarint(gap | BOTH_COUNTS)
    writer.appendVarint(textCount)
    writer.appendVarint(titleCount)
  } else if (textCount > 2) {
    writer.appendVarint(gap | TEXT_COUNT)
    writer.appendVarint(textCount)
  } else writer.appendVarint(gap | (textCount === 2 ? TWICE_IN_TEXT : ONCE_IN_TEXT))
}

/** Reads the postings of one term from `data`, in order. */
export class PostingCursor {
  slot = -1
  textCount = 0
  titleCount = 0
  readonly segment: number
  readonly #data: Uint8Array
  #at: number
  readonly #end: number

  constructor(segment: number, data: Uint8Array, start: number, end: number) {
    this.segment = segment
    this.#data = data
    this.#at = start
    this.#end = end
  }

  /**
   * Moves to the next posting; returns false after the last one.
   *
   * @throws control_plane_unavailable  the bytes are damaged
   */
  next(): boolean {
    if (this.#at >= this.#end) return false
    const head = this.#varint()
    this.slot += (head >> 2) + 1
    const form = head & 3
    this.textCount = form < TEXT_COUNT ? form + 1 : this.#varint()
    this.titleCount = form === BOTH_COUNTS ? this.#varint() : 0
    if (this.#at > this.#end || this.slot >= SEGMENT_SLOTS_MAX) throw damagedBlock(this.segment)
    return true
  }

  #varint(): number {
    const data = this.#data
    let byte = data[this.#at++]!
    if (byte < 128) return byte
    let value = byte & 127
    for (let shift = 7; ; shift += 7) {
      byte = data[this.#at++]!
      value |= (byte & 127) << shift
      if (!(byte >= 128 && shift < 28)) return value
    }
  }
}

/**
 * Decodes the postings of one term.
 *
 * @throws control_plane_unavailable  the bytes are damaged
 */
export function decodePostings(cursor: PostingCursor, count: number): PostingList {
  const slots = new Uint16Array(count)
  const textCounts = new Uint16Array(count)
  let titleCounts: Uint16Array | undefined
  let at = 0
  while (cursor.next()) {
    slots[at] = cursor.slot
    textCounts[at] = cursor.textCount
    if (cursor.titleCount > 0) {
      titleCounts ??= new Uint16Array(count)
      titleCounts[at] = cursor.titleCount
    }
    at++
  }
  if (at !== count) throw damagedBlock(cursor.segment)
  return { slots, textCounts, titleCounts }
}

/** Creates the error for a block of postings that cannot be read. */
export function damagedBlock(segment: number): WbError {
  return damagedStore(`segment ${segment} of posting_block`)
}
