import type { SqliteConnection } from '../connection.ts'
import { ByteWriter } from './byte-writer.ts'
import { TERM_COUNT_MAX, writePosting } from './posting-list.ts'
import { insertSlots } from './segment-rows.ts'
import { BlockPacker } from './term-blocks.ts'
import { termKey } from './term-key.ts'

/** A record to index. */
export interface PostingRecord {
  readonly record: number
  /** Number of occurrences of each term in the title. */
  readonly title: ReadonlyMap<string, number>
  /** Number of occurrences of each term in the text. */
  readonly text: ReadonlyMap<string, number>
}

/** Postings of a term: slot, count in the text and count in the title of each record, one after another. */
type FlatPostings = number[]

/** Stores records as one segment. Their numbers must ascend. */
export function insertSegment(
  connection: SqliteConnection,
  index: number,
  version: number,
  records: readonly PostingRecord[],
): void {
  const first = records[0]!.record
  const { lastInsertRowid } = connection
    .prepare(
      `INSERT INTO posting_segment (posting_index, state, stamp, first_record, last_record, slots)
        VALUES (?, 1, ?, ?, ?, ?)`,
    )
    .run(index, version, first, records.at(-1)!.record, records.length)
  const segment = Number(lastInsertRowid)
  insertSlots(connection, segment, {
    records: Uint32Array.from(records, ({ record }) => record - first),
    lengths: Uint32Array.from(records, lengthOf),
  })
  const bytes = insertBlocks(connection, segment, collectPostings(records))
  connection.prepare('UPDATE posting_segment SET bytes = ? WHERE id = ?').run(bytes, segment)
}

/** Returns the number of words in the title and the text of a record. */
function lengthOf({ title, text }: PostingRecord): number {
  let length = 0
  for (const count of title.values()) length += count
  for (const count of text.values()) length += count
  return length
}

function collectPostings(records: readonly PostingRecord[]): Map<string, FlatPostings> {
  const lists = new Map<string, FlatPostings>()
  for (const [slot, { title, text }] of records.entries()) {
    for (const [term, count] of text) appendCounts(lists, term, slot, count, 0)
    for (const [term, count] of title) appendCounts(lists, term, slot, 0, count)
  }
  return lists
}

/** Adds counts to the postings of a term. The counts of a slot must be added before those of higher slots. */
function appendCounts(
  lists: Map<string, FlatPostings>,
  term: string,
  slot: number,
  textCount: number,
  titleCount: number,
): void {
  const key = termKey(term)
  const list = lists.get(key)
  if (!list) {
    lists.set(key, [slot, textCount, titleCount])
    return
  }
  const last = list.length - 3
  if (list[last] === slot) {
    list[last + 1]! += textCount
    list[last + 2]! += titleCount
  } else list.push(slot, textCount, titleCount)
}

/** Stores posting lists in blocks. Returns the total size of the blocks in bytes. */
function insertBlocks(
  connection: SqliteConnection,
  segment: number,
  lists: Map<string, FlatPostings>,
): number {
  const packer = new BlockPacker(connection, segment)
  const postings = new ByteWriter()
  for (const term of [...lists.keys()].sort()) {
    const list = lists.get(term)!
    postings.clear()
    let previous = -1
    for (let at = 0; at < list.length; at += 3) {
      const slot = list[at]!
      const textCount = Math.min(list[at + 1]!, TERM_COUNT_MAX)
      writePosting(postings, previous, slot, textCount, Math.min(list[at + 2]!, TERM_COUNT_MAX))
      previous = slot
    }
    packer.add(term, list.length / 3, postings)
  }
  packer.flush()
  return packer.storedBytes
}
