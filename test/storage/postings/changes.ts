import type { PostingRecord } from '../../../src/storage/sqlite/postings/segment-builder.ts'
import { countTerms } from './reference.ts'

const RECORDS_PER_CHANGE = 8

/** A change of a store, which follows from its number. */
export type NumberedChange =
  | { readonly op: 'add'; readonly first: number }
  | { readonly op: 'remove'; readonly records: readonly number[] }

/** Returns the change with a number, from 0 on. Of ten changes, seven add records. */
export function changeOf(n: number): NumberedChange {
  const kind = n % 10
  if (kind < 7) return { op: 'add', first: n * RECORDS_PER_CHANGE + 1 }
  const record = (n * 7_919) % (n * RECORDS_PER_CHANGE)
  return { op: 'remove', records: [record, Math.floor(record / 2), n * RECORDS_PER_CHANGE - 30] }
}

export function recordsOf({ first }: { first: number }): PostingRecord[] {
  return Array.from({ length: RECORDS_PER_CHANGE }, (_, at) => {
    const record = first + at
    const word = (n: number) => `w${(record * 31 + n * n * 17) % 700}`
    const text = countTerms(Array.from({ length: 60 }, (_, n) => word(n)))
    return { record, title: countTerms([word(3), 'title']), text }
  })
}
