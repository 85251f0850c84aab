import fc from 'fast-check'
import { expect, test } from 'vitest'
import { sortInTurns } from '../../src/base/sort-in-turns.ts'
import { WorkPacer } from '../../src/base/work-pacer.ts'

test('sorts like toSorted, also equal items', async () => {
  const compare = (left: readonly number[], right: readonly number[]) => left[0]! - right[0]!
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 0, max: 5_500 }),
      fc.integer({ min: 1, max: 1_000 }),
      async (length, values) => {
        const items = Array.from({ length }, (_, n) => [(n * 7_919) % values, n])
        expect(await sortInTurns(items, compare, new WorkPacer())).toEqual(items.toSorted(compare))
      },
    ),
    { numRuns: 10 },
  )
})
