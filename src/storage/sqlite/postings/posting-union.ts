import { type PostingList, TERM_COUNT_MAX } from './posting-list.ts'

/** Merges the posting lists of several terms into one. Adds up the counts of each slot. */
export function unionPostings(lists: readonly (PostingList | undefined)[]): PostingList | undefined {
  const present = lists.filter(list => list !== undefined)
  if (present.length < 2) return present[0]
  const counts = new Map<number, { text: number; title: number }>()
  for (const { slots, textCounts, titleCounts } of present)
    for (let at = 0; at < slots.length; at++) {
      const sum = counts.get(slots[at]!) ?? { text: 0, title: 0 }
      sum.text += textCounts[at]!
      sum.title += titleCounts?.[at] ?? 0
      counts.set(slots[at]!, sum)
    }
  const slots = Uint16Array.from(counts.keys()).sort()
  return {
    slots,
    textCounts: Uint16Array.from(slots, slot => Math.min(counts.get(slot)!.text, TERM_COUNT_MAX)),
    titleCounts: Uint16Array.from(slots, slot => Math.min(counts.get(slot)!.title, TERM_COUNT_MAX)),
  }
}
