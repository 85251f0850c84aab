import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { coverageByRecord, knownShare } from '../../src/knowledge/search/word-weights.ts'
import type { Occurrences } from '../../src/storage/content.ts'

/** Counts in 100 records: for each word, the number of records with it, and which of the given records have it. */
function counted(words: Record<string, [records: number, ...among: number[]]>): Occurrences {
  return {
    records: 100,
    words: Object.entries(words).map(([word, [records, ...among]]) => ({ word, records, among })),
  }
}

const occurrences = fc
  .record({
    records: fc.integer({ min: 5, max: 1_000 }),
    among: fc.array(fc.subarray([1, 2, 3, 4, 5]), { minLength: 1, maxLength: 12 }),
  })
  .chain(({ records, among }) =>
    fc.record({
      records: fc.constant(records),
      words: fc.tuple(
        ...among.map((held, at) =>
          fc.record({
            word: fc.constant(`w${at}`),
            records: fc.integer({ min: held.length, max: records }),
            among: fc.constant(held),
          }),
        ),
      ),
    }),
  )

describe('coverage', () => {
  test('is 1 for a record with every word, and absent for one without any', () => {
    fc.assert(
      fc.property(occurrences, counts => {
        const shares = coverageByRecord(counts)
        for (const record of [1, 2, 3, 4, 5]) {
          const held = counts.words.filter(({ among }) => among.includes(record)).length
          if (held === 0) expect(shares.has(record)).toBe(false)
          else if (held === counts.words.length) expect(shares.get(record)).toBe(1)
          else expect(shares.get(record)! > 0 && shares.get(record)! < 1).toBe(true)
        }
      }),
    )
  })

  test('gives rare words more weight, and most to a word that no record has', () => {
    const shares = coverageByRecord(counted({ penguins: [1, 7], data: [60, 7, 8] }))
    expect(shares.get(7)).toBe(1)
    expect(shares.get(8)).toBeLessThan(0.15)
    expect(coverageByRecord(counted({ ostriches: [0], data: [60, 8] })).get(8)).toBeLessThan(0.1)
  })

  test('is undefined for a question without words', () => {
    expect(coverageByRecord(counted({}))).toEqual(new Map())
  })
})

describe('the share of a question without some of its words', () => {
  const counts = counted({ penguins: [1], data: [60], ostriches: [0] })

  test('is small without its rare words, and large without its common ones', () => {
    expect(knownShare(new Set(['penguins']), counts)).toBeLessThan(0.15)
    expect(knownShare(new Set(['data']), counts)).toBeGreaterThan(0.85)
  })

  test('ignores words that no record has', () => {
    expect(knownShare(new Set(['ostriches']), counts)).toBe(1)
    expect(knownShare(new Set(['ostriches']), counted({ ostriches: [0] }))).toBe(1)
  })
})
