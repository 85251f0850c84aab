import { LRUCache } from 'lru-cache'
import { lowerBound } from '../../record-set.ts'
import type { SqliteConnection } from '../connection.ts'
import { hasBit, type PostingSegmentRow, readDeletions } from './segment-rows.ts'
import type { SlotCache } from './slot-cache.ts'

const MASK_BYTES_MAX = 32 * 1024 * 1024
/** Estimated bytes of a mask in addition to its slots. */
const MASK_OVERHEAD_BYTES = 200

/**
 * Records that match a filter. `key` identifies the filter. Whether a record matches must never change. `read` returns the
 * records in ascending order, and is called only for segments that have changed, or have no cached mask.
 */
export interface VisibleRecords {
  readonly key: string
  read(): ArrayLike<number>
}

/** Records of one segment that a search may see. */
export interface SegmentMask {
  readonly stamp: number
  /** 1 for each slot that the search may see; undefined if it may see all. */
  readonly slots: Uint8Array | undefined
  /** Number of visible slots. */
  readonly records: number
  /** Number of words in all visible slots. */
  readonly length: number
}

/** Masks of all segments of an index, at one version of it. */
interface IndexMask {
  readonly version: number
  readonly segments: ReadonlyMap<number, SegmentMask>
}

/** Visible records of an index. `masks` is in the order of its segments. */
export interface MaskedIndex {
  readonly masks: readonly SegmentMask[]
  readonly records: number
  readonly length: number
}

/** Computes masks, and caches those of recent callers and filters. Reads inside a transaction of the caller. */
export class RecordMasks {
  readonly #connection: SqliteConnection
  readonly #slots: SlotCache
  readonly #masks = new LRUCache<string, IndexMask>({
    maxSize: MASK_BYTES_MAX,
    sizeCalculation: ({ segments }) => {
      let bytes = MASK_OVERHEAD_BYTES
      for (const { slots } of segments.values()) bytes += MASK_OVERHEAD_BYTES + (slots?.length ?? 0)
      return bytes
    },
  })

  constructor(connection: SqliteConnection, slots: SlotCache) {
    this.#connection = connection
    this.#slots = slots
  }

  /**
   * Returns the masks of the live segments. Computes those of new and changed segments only.
   *
   * @param visible  records that the search may see; undefined for all that are not deleted
   */
  get(
    index: { readonly id: number; readonly version: number },
    segments: readonly PostingSegmentRow[],
    visible: VisibleRecords | undefined,
  ): MaskedIndex {
    const key = JSON.stringify([index.id, visible?.key])
    let known = this.#masks.get(key)
    if (known?.version !== index.version) {
      known = { version: index.version, segments: this.#compute(segments, visible, known?.segments) }
      this.#masks.set(key, known)
    }
    const { segments: masksById } = known
    const masks = segments.map(({ id }) => masksById.get(id)!)
    const sum = (count: (mask: SegmentMask) => number) =>
      masks.reduce((total, mask) => total + count(mask), 0)
    return { masks, records: sum(mask => mask.records), length: sum(mask => mask.length) }
  }

  #compute(
    segments: readonly PostingSegmentRow[],
    visible: VisibleRecords | undefined,
    old: ReadonlyMap<number, SegmentMask> | undefined,
  ): ReadonlyMap<number, SegmentMask> {
    let matching: ArrayLike<number> | undefined
    return new Map(
      segments.map(segment => {
        const known = old?.get(segment.id)
        if (known?.stamp === segment.stamp) return [segment.id, known]
        matching ??= visible?.read()
        return [segment.id, this.#maskOf(segment, matching)]
      }),
    )
  }

  #maskOf(segment: PostingSegmentRow, matching: ArrayLike<number> | undefined): SegmentMask {
    const slots = new Uint8Array(segment.slots)
    const { records, lengths } = this.#slots.get(segment)
    if (matching) selectRecords(slots, segment.firstRecord, records, matching)
    else slots.fill(1)
    const deletions = readDeletions(this.#connection, segment)
    let [visible, length] = [0, 0]
    for (let slot = 0; slot < slots.length; slot++) {
      if (deletions && hasBit(deletions, slot)) slots[slot] = 0
      if (slots[slot] === 0) continue
      visible++
      length += lengths[slot]!
    }
    const { stamp } = segment
    return { stamp, slots: visible === slots.length ? undefined : slots, records: visible, length }
  }
}

/** Selects the slots of matching records. Both lists ascend. */
function selectRecords(
  slots: Uint8Array,
  first: number,
  records: Uint32Array,
  matching: ArrayLike<number>,
): void {
  let slot = 0
  for (let at = lowerBound(matching, first); at < matching.length && slot < slots.length; at++) {
    const wanted = matching[at]! - first
    while (slot < slots.length && records[slot]! < wanted) slot++
    if (records[slot] === wanted) slots[slot] = 1
  }
}
