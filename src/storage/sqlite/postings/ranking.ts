import type { ScoredRecord } from '../../content.ts'
import { TopResults } from '../../top-results.ts'
import type { PostingList } from './posting-list.ts'
import type { SegmentMask } from './record-masks.ts'
import { SEGMENT_SLOTS_MAX } from './schema.ts'
import type { SlotTable } from './segment-rows.ts'

const K1 = 1.2
const B = 0.75

/** Postings of a term, or of terms that count as one, in each segment. */
export interface WeightedPostings {
  readonly weight: number
  readonly lists: readonly (PostingList | undefined)[]
}

/** A segment of the searched index. */
export interface RankedSegment {
  readonly firstRecord: number
  readonly slots: SlotTable
  readonly mask: SegmentMask
  /** 1 for each slot that can be in the result; undefined for all. The other slots count only in the statistics. */
  readonly selected?: Uint8Array | undefined
}

export interface RankingOptions {
  readonly titleWeight: number
  readonly limit: number
}

/** Scores of the slots of one segment, zero between searches. */
const scores = new Float64Array(SEGMENT_SLOTS_MAX)

/**
 * Ranks the visible records that contain a term, best first; equal scores by ascending record. All counts, and the
 * average length, are those of the visible records.
 *
 * @param segments  by ascending records
 * @see https://en.wikipedia.org/wiki/Okapi_BM25
 */
export function rankRecords(
  segments: readonly RankedSegment[],
  terms: readonly WeightedPostings[],
  { titleWeight, limit }: RankingOptions,
): ScoredRecord[] {
  let [records, length] = [0, 0]
  for (const { mask } of segments) {
    records += mask.records
    length += mask.length
  }
  const lengthFactor = length > 0 ? (K1 * B * records) / length : 0
  const weighted = terms.map(({ weight, lists }) => ({
    lists,
    factor: weight * inverseDocumentFrequency(records, countVisible(segments, lists)) * (K1 + 1),
  }))
  const top = new TopResults(limit)
  for (const [at, { firstRecord, slots, mask, selected }] of segments.entries()) {
    const { lengths, records: offsets } = slots
    let isEmpty = true
    for (const { lists, factor } of weighted) {
      const list = lists[at]
      if (!list) continue
      isEmpty = false
      addScores(list, mask.slots, lengths, { factor, titleWeight, lengthFactor })
    }
    if (isEmpty) continue
    for (let slot = 0; slot < offsets.length; slot++) {
      const score = scores[slot]!
      // Of equal scores, the first record is the best, so a later one with the lowest score cannot be among the results.
      if (score > 0 && score > top.minScore && selected?.[slot] !== 0)
        top.offer(score, firstRecord + offsets[slot]!)
    }
    scores.fill(0, 0, offsets.length)
  }
  return top.ranked()
}

/** Counts the visible records that contain a term. */
export function countVisible(
  segments: readonly { readonly mask: SegmentMask }[],
  lists: readonly (PostingList | undefined)[],
): number {
  let records = 0
  for (const [at, { mask }] of segments.entries()) {
    const slots = lists[at]?.slots
    if (slots) records += mask.slots ? countSelected(slots, mask.slots) : slots.length
  }
  return records
}

function countSelected(slots: Uint16Array, mask: Uint8Array): number {
  let selected = 0
  for (let at = 0; at < slots.length; at++) selected += mask[slots[at]!]!
  return selected
}

function inverseDocumentFrequency(records: number, withTerm: number): number {
  return Math.log(1 + (records - withTerm + 0.5) / (withTerm + 0.5))
}

function addScores(
  { slots, textCounts, titleCounts }: PostingList,
  mask: Uint8Array | undefined,
  lengths: Uint32Array,
  { factor, titleWeight, lengthFactor }: { factor: number; titleWeight: number; lengthFactor: number },
): void {
  const base = K1 * (1 - B)
  for (let at = 0; at < slots.length; at++) {
    const slot = slots[at]!
    if (mask && mask[slot] === 0) continue
    const count = titleCounts ? textCounts[at]! + titleWeight * titleCounts[at]! : textCounts[at]!
    scores[slot]! += (factor * count) / (count + base + lengthFactor * lengths[slot]!)
  }
}
