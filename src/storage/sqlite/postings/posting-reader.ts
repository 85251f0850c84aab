import { LRUCache } from 'lru-cache'
import type { ScoredRecord } from '../../content.ts'
import type { SqliteConnection } from '../connection.ts'
import { findActivePostingIndex } from './index-rows.ts'
import { PostingCache } from './posting-cache.ts'
import { unionPostings } from './posting-union.ts'
import { type ExpandedTerm, expandTermPrefix, listSegmentTerms } from './prefix-expansion.ts'
import { countVisible, rankRecords, type WeightedPostings } from './ranking.ts'
import { type MaskedIndex, RecordMasks, type VisibleRecords } from './record-masks.ts'
import { listLiveSegments, type PostingSegmentRow, slotOf } from './segment-rows.ts'
import { SlotCache } from './slot-cache.ts'
import { matchGroup, type TermGroup } from './term-groups.ts'
import { termKey } from './term-key.ts'

/** Maximum number of indexes whose lists of segments are cached. */
const INDEXES_MAX = 256
const TITLE_WEIGHT = 3

/**
 * A word of a query. Its terms are ranked as if they were one term. The score of the word is multiplied by `weight`, which
 * is positive.
 */
export interface WeightedWord {
  readonly terms: readonly string[]
  readonly weight: number
}

export interface PostingQuery {
  readonly words: readonly WeightedWord[]
  readonly limit: number
  /** Undefined for all records. */
  readonly visible: VisibleRecords | undefined
  /** Condition that every result must meet. Records that do not meet it still count in the statistics. */
  readonly required?: TermGroup | undefined
  /** Numbers of the only possible results; undefined for all. Other records still count in the statistics. */
  readonly among?: readonly number[] | undefined
  /** Weight of an occurrence in the title, relative to one in the text; 3 by default. */
  readonly titleWeight?: number
}

/** The visible records that match a group of terms. */
export interface GroupOccurrences {
  /** Number of all matching records. */
  readonly records: number
  /** Matching records of the query's `among` list. */
  readonly among: readonly number[]
}

/** Segments of an index at one version of the index. */
interface SearchedIndex {
  readonly id: number
  readonly version: number
  readonly segments: readonly PostingSegmentRow[]
}

/**
 * Searches the active posting indexes of collections. Results depend on the visible records only. Each call reads one
 * state of the store: that of the open transaction, or the current one. A connection must not read its own uncommitted
 * changes, because a cache would keep them after a rollback.
 */
export class PostingReader {
  readonly #connection: SqliteConnection
  readonly #slots: SlotCache
  readonly #masks: RecordMasks
  readonly #postings: PostingCache
  readonly #indexes = new LRUCache<number, SearchedIndex>({ max: INDEXES_MAX })

  constructor(connection: SqliteConnection, options: { cacheBytesMax?: number } = {}) {
    this.#connection = connection
    this.#slots = new SlotCache(connection)
    this.#masks = new RecordMasks(connection, this.#slots)
    this.#postings = new PostingCache(connection, options.cacheBytesMax)
  }

  /**
   * Returns the visible records that contain any of the words by BM25 score (k1 = 1.2, b = 0.75), best first; equal
   * scores by ascending record. Counts visible records only. No result if the collection has no active index.
   */
  search(
    collection: number,
    { words, limit, visible, required, among, titleWeight = TITLE_WEIGHT }: PostingQuery,
  ): ScoredRecord[] {
    for (const { weight } of words)
      if (!(weight > 0 && weight < Number.POSITIVE_INFINITY))
        throw new RangeError(`a word has the weight ${weight}`)
    return this.#read(collection, visible, [], (segments, masked) => {
      const selected = among
        ? this.#select(segments, masked, among)
        : required && this.#matchGroup(segments, masked, required)
      return rankRecords(
        segments.map((segment, at) => ({
          firstRecord: segment.firstRecord,
          slots: this.#slots.get(segment),
          mask: masked.masks[at]!,
          selected: selected?.[at],
        })),
        words.map(({ terms, weight }): WeightedPostings => {
          const lists = terms.map(term => this.#readPostings(segments, masked, term))
          return { weight, lists: segments.map((_, at) => unionPostings(lists.map(each => each[at]))) }
        }),
        { titleWeight, limit },
      )
    })
  }

  /**
   * Counts the visible records that match each group, and all visible records.
   *
   * @param query.among  records; the result lists which of these match each group
   */
  countOccurrences(
    collection: number,
    {
      groups,
      among,
      visible,
    }: { groups: readonly TermGroup[]; among: readonly number[]; visible: VisibleRecords | undefined },
  ): { records: number; groups: GroupOccurrences[] } {
    const absent = { records: 0, groups: groups.map(() => ({ records: 0, among: [] })) }
    return this.#read(collection, visible, absent, (segments, masked) => {
      const located = among.flatMap(record => this.#locate(segments, masked, record))
      const counted = groups.map((group): GroupOccurrences => {
        const [terms, ...others] = group
        const [term, ...alternatives] = terms ?? []
        const isSingle = term !== undefined && others.length + alternatives.length + among.length === 0
        if (isSingle) {
          const maskedSegments = masked.masks.map(mask => ({ mask }))
          return {
            records: countVisible(maskedSegments, this.#readPostings(segments, masked, term)),
            among: [],
          }
        }
        const matches = this.#matchGroup(segments, masked, group)
        const records = matches.reduce((sum, selected) => sum + countOnes(selected), 0)
        const containing = located.filter(({ at, slot }) => matches[at]![slot] === 1)
        return { records, among: containing.map(({ record }) => record) }
      })
      return { records: masked.records, groups: counted }
    })
  }

  /**
   * Returns at most `limit` terms that start with `prefix`: those in the largest number of visible records first; equal
   * counts in order of the terms. Reads a bounded number of postings: of a very common prefix, only the first terms in
   * order are considered.
   */
  expandPrefix(
    collection: number,
    { prefix, limit, visible }: { prefix: string; limit: number; visible: VisibleRecords | undefined },
  ): ExpandedTerm[] {
    return this.#read(collection, visible, [], (segments, masked) =>
      expandTermPrefix(this.#connection, segments, masked.masks, { prefix, limit }),
    )
  }

  /**
   * Returns terms in ascending order of their UTF-8 bytes, from `from` on, at most `limit`. Does not check whether a visible
   * record contains a term, because this would take much longer.
   */
  listTerms(collection: number, { from, limit }: { from: string; limit: number }): string[] {
    return this.#read(collection, undefined, [], segments =>
      listSegmentTerms(this.#connection, segments, { from, limit }),
    )
  }

  /** Estimated bytes of cached postings. */
  get cachedBytes(): number {
    return this.#postings.bytes
  }

  #read<T>(
    collection: number,
    visible: VisibleRecords | undefined,
    absent: T,
    read: (segments: readonly PostingSegmentRow[], masked: MaskedIndex) => T,
  ): T {
    const run = () => {
      const index = this.#refresh(collection)
      return index ? read(index.segments, this.#masks.get(index, index.segments, visible)) : absent
    }
    return this.#connection.database.inTransaction ? run() : this.#connection.snapshot(run)
  }

  /** Returns the list of segments, which is read again whenever the version has changed. */
  #refresh(collection: number): SearchedIndex | undefined {
    const active = findActivePostingIndex(this.#connection, collection)
    if (!active) return undefined
    const { id, version } = active
    let index = this.#indexes.get(id)
    if (index?.version !== version) {
      index = { id, version, segments: listLiveSegments(this.#connection, id) }
      this.#indexes.set(id, index)
    }
    return index
  }

  /** Returns the postings of a term in each segment that has visible records. */
  #readPostings(segments: readonly PostingSegmentRow[], { masks }: MaskedIndex, term: string) {
    const key = termKey(term)
    return segments.map(({ id }, at) => (masks[at]!.records > 0 ? this.#postings.get(id, key) : undefined))
  }

  /** Returns the visible slots of each segment that match a group. */
  #matchGroup(segments: readonly PostingSegmentRow[], masked: MaskedIndex, group: TermGroup): Uint8Array[] {
    const lists = group.map(terms => terms.map(term => this.#readPostings(segments, masked, term)))
    return segments.map(({ slots }, at) => {
      const mask = masked.masks[at]!
      const bySegment = mask.records > 0 ? lists.map(terms => terms.map(each => each[at])) : []
      return matchGroup(slots, bySegment, mask.slots)
    })
  }

  /** Returns the slots of the given records in each segment. */
  #select(
    segments: readonly PostingSegmentRow[],
    masked: MaskedIndex,
    among: readonly number[],
  ): Uint8Array[] {
    const selected = segments.map(({ slots }) => new Uint8Array(slots))
    for (const record of among)
      for (const { at, slot } of this.#locate(segments, masked, record)) selected[at]![slot] = 1
    return selected
  }

  /** Returns the position of a record: its segment in `segments`, and its slot. Empty if it is missing or not visible. */
  #locate(segments: readonly PostingSegmentRow[], { masks }: MaskedIndex, record: number) {
    const at = segments.findLastIndex(({ firstRecord }) => firstRecord <= record)
    const segment = segments[at]
    if (!segment) return []
    const slot = slotOf(segment.firstRecord, this.#slots.get(segment).records, record)
    const isVisible = slot >= 0 && masks[at]!.slots?.[slot] !== 0
    return isVisible ? [{ record, at, slot }] : []
  }
}

function countOnes(values: Uint8Array): number {
  let ones = 0
  for (let at = 0; at < values.length; at++) ones += values[at]!
  return ones
}
