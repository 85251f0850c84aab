import type { PostingList } from './posting-list.ts'

/** A condition on records: a record matches if it contains at least one term of each list. */
export type TermGroup = readonly (readonly string[])[]

/**
 * Returns 1 for each slot of a segment that matches a group and that a search may see, else 0.
 *
 * @param lists  postings of the terms, in the order of the group
 * @param mask   1 for each slot that the search may see; undefined if it may see all
 */
export function matchGroup(
  slots: number,
  lists: readonly (readonly (PostingList | undefined)[])[],
  mask: Uint8Array | undefined,
): Uint8Array {
  /** For each slot, the number of lists it matches before the first list that it does not match. */
  const matched = new Uint16Array(slots)
  for (const [at, alternatives] of lists.entries())
    for (const list of alternatives)
      for (const slot of list?.slots ?? []) if (matched[slot] === at) matched[slot] = at + 1
  const selected = new Uint8Array(slots)
  if (lists.length === 0) return selected
  for (let slot = 0; slot < slots; slot++)
    if (matched[slot] === lists.length && mask?.[slot] !== 0) selected[slot] = 1
  return selected
}
