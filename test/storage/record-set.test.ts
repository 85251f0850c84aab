import fc from 'fast-check'
import { expect, test } from 'vitest'
import { SelectedRecords, SortedRecords } from '../../src/storage/record-set.ts'

test('a set of records contains what it was created from, in ascending order', () => {
  const records = fc.uniqueArray(fc.integer({ min: 1, max: 200 }), { maxLength: 100 })
  fc.assert(
    fc.property(records, fc.func(fc.boolean()), fc.array(fc.nat(210)), (numbers, isSelected, lookups) => {
      const all = Float64Array.from(numbers).sort()
      const bitmap = new Uint32Array(Math.ceil(all.length / 32))
      const expected = [...all].filter(record => isSelected(record))
      for (const record of expected) {
        const position = all.indexOf(record)
        bitmap[position >>> 5]! |= 1 << (position & 31)
      }
      const selected = new SelectedRecords(all, bitmap, expected.length)
      for (const set of [selected, new SortedRecords(selected.ascending)]) {
        expect([...set]).toEqual(expected)
        expect(set.size).toBe(expected.length)
        for (const record of [...lookups, ...all, ...lookups])
          expect(set.has(record)).toBe(expected.includes(record))
      }
    }),
  )
})
