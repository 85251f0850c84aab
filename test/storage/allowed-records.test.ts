import fc from 'fast-check'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { compareCodePoints } from '../../src/base/compare-code-points.ts'
import { type Filter, matchesFilter, parseFilter } from '../../src/storage/filter.ts'
import { PayloadColumn } from '../../src/storage/sqlite/payload-column.ts'
import { PayloadColumns } from '../../src/storage/sqlite/payload-columns.ts'
import { only } from './content-data.ts'
import { PayloadTable } from './payload-table.ts'

vi.mock(import('../../src/base/compare-code-points.ts'), { spy: true })

const below = (bound: number) => parseFilter({ n: { $lt: bound } })
const value = fc.oneof(
  fc.constantFrom<unknown>(null, true, false, 0, 1, 10, 9, '9', '10', '', 'a', '2026-01-31', { a: 1 }, []),
  fc.array(fc.constantFrom<unknown>('a', 'b', 1, null, ['a'], {}), { maxLength: 3 }),
)
const payload = fc.record({ a: value, b: value, 'c.d': value }, { requiredKeys: [] })
const scalar = fc.constantFrom(null, true, 0, 1, 9, 10, '9', '10', '', 'a', 'b', '2026-01-31')
const key = fc.constantFrom('a', 'b', 'c.d', 'none')
const { filter } = fc.letrec<{ filter: Filter }>(tie => ({
  filter: fc.oneof(
    { maxDepth: 3 },
    fc.record({ kind: fc.constantFrom('in', 'all'), key, values: fc.array(scalar, { maxLength: 3 }) }),
    fc.record({
      kind: fc.constant('range'),
      key,
      operator: fc.constantFrom('<', '<=', '>', '>='),
      bound: fc.constantFrom<string | number>(1, 9, 10, '9', 'a', '2026-01-01'),
    }),
    fc.record({ kind: fc.constant('type'), key, type: fc.constantFrom('text', 'number', 'array') }),
    fc.record({ kind: fc.constantFrom('and', 'or'), parts: fc.array(tie('filter'), { maxLength: 3 }) }),
    fc.record({ kind: fc.constant('not'), operand: tie('filter') }),
  ) as fc.Arbitrary<Filter>,
}))
/** Adds a payload, deletes the n-th record, trims the log of deletions, or searches. */
const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ add: fc.array(payload, { minLength: 1, maxLength: 40 }) }) },
  { weight: 3, arbitrary: fc.record({ remove: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ trim: fc.constant(true) }) },
  { weight: 6, arbitrary: fc.record({ search: filter }) },
)

describe('records that match a filter', () => {
  test.each([
    ['with enough memory', undefined],
    ['with memory for some columns', 2_000],
    ['without memory', 0],
  ])('are those of the evaluator after any changes, %s', (_, columnBytesMax) => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 15 }), steps => {
        const table = new PayloadTable(columnBytesMax)
        const stored = new Map<number, Record<string, unknown>>()
        for (const step of steps) {
          if ('add' in step) for (const one of step.add) stored.set(table.add(one), one)
          else if ('trim' in step) table.trimLog()
          else if ('remove' in step) {
            const record = [...stored.keys()][step.remove % stored.size]
            if (record === undefined) continue
            table.remove(record)
            stored.delete(record)
          } else {
            const expected = [...stored].filter(([, one]) => matchesFilter(step.search, one))
            expect(table.matching(step.search)).toEqual(expected.map(([record]) => record))
            expect(table.allowedRecords.columnBytes).toBeLessThanOrEqual(columnBytesMax ?? 1e6)
          }
        }
      }),
      { numRuns: 60 },
    )
  })

  test('are those of the evaluator for many conditions on one key', () => {
    const text = fc.string({ unit: fc.constantFrom('1', '9', 'a', '😀', '\ufb01'), maxLength: 2 })
    const bound = fc.oneof(text, fc.constantFrom(0, -0, 1, 9, 1.5, -1, 1e21, 5e-324, Number.MAX_VALUE))
    const one = fc.oneof(bound, fc.constantFrom(null, true))
    const condition = fc.oneof(
      fc.tuple(fc.constantFrom('$lt', '$lte', '$gt', '$gte'), bound),
      fc.tuple(fc.constantFrom('$in', '$nin', '$all'), fc.array(one, { maxLength: 3 })),
    )
    const conditions = fc.array(condition, { minLength: 2, maxLength: 12 })
    const values = fc.array(fc.oneof(one, fc.array(one, { maxLength: 4 })), { minLength: 1, maxLength: 8 })
    fc.assert(
      fc.property(fc.constantFrom('$and', '$or'), conditions, values, (how, written, stored) => {
        const table = new PayloadTable()
        const records = stored.map(n => table.add({ n }))
        const search = parseFilter({ [how]: written.map(([name, operand]) => ({ n: { [name]: operand } })) })
        const expected = records.filter((_, at) => matchesFilter(search, { n: stored[at] }))
        expect(table.matching(search)).toEqual(expected)
      }),
      { numRuns: 500 },
    )
  })

  test('are limited to those that name a principal of the caller in a list', () => {
    const table = new PayloadTable()
    const lists = [['alice'], ['bob'], ['*'], 'alice', '*', ['bob', 'alice'], [], null, [['alice']]]
    const [first, , all, , , both] = lists.map(visible_to => table.add({ visible_to, n: 1 }))
    table.add({ n: 1 })
    expect(table.matching(undefined, only('alice'))).toEqual([first, all, both])
    expect(table.matching(below(2), only('alice'))).toEqual([first, all, both])
    expect(table.matching(below(1), only('alice'))).toEqual([])
  })
})

describe('payloads', () => {
  test('are read once for all filters on a key', () => {
    const table = new PayloadTable()
    for (let n = 0; n < 10; n++) table.add({ n })
    const load = vi.spyOn(PayloadColumns, 'load')
    onTestFinished(() => load.mockRestore())
    expect(table.matching(below(3))).toHaveLength(3)
    table.remove(table.matching(below(1))![0]!)
    table.add({ n: 1 })
    expect(table.matching(below(4))).toHaveLength(4)
    expect(load).toHaveBeenCalledTimes(1)
  })

  test('are compared with many ranges in few steps', () => {
    const table = new PayloadTable()
    for (let n = 0; n < 500; n++) table.add({ n: `${n}` })
    const ranges = Array.from({ length: 256 }, (_, at) => ({ n: { $lt: `${at}` } }))
    const filter = parseFilter({ $or: ranges })
    const compared = vi.mocked(compareCodePoints).mockClear()
    expect(table.matching(filter)).not.toHaveLength(0)
    // Comparing each value with each bound takes 128,000 comparisons.
    expect(compared.mock.calls.length).toBeLessThan(15_000)
  })

  test('are read again for another key, and kept for both', () => {
    const table = new PayloadTable()
    table.add({ n: 1, tag: 'a' })
    const load = vi.spyOn(PayloadColumns, 'load')
    onTestFinished(() => load.mockRestore())
    expect(table.matching(below(2))).toHaveLength(1)
    expect(table.matching(parseFilter({ tag: 'a' }))).toHaveLength(1)
    expect(table.matching(below(3))).toHaveLength(1)
    expect(load).toHaveBeenCalledTimes(2)
  })

  test('are not loaded again if they exceeded the memory limit', () => {
    const table = new PayloadTable(0)
    table.add({ n: 1 })
    const load = vi.spyOn(PayloadColumns, 'load')
    onTestFinished(() => load.mockRestore())
    for (const bound of [1, 2, 3]) expect(table.matching(below(bound))).toHaveLength(bound === 1 ? 0 : 1)
    expect(load).toHaveBeenCalledTimes(1)
  })

  test('of deleted records do not accumulate', () => {
    const table = new PayloadTable()
    table.add({ n: 0, text: 'stays' })
    for (let n = 0; n < 2_000; n++) {
      table.remove(table.add({ n: -1 - n }))
      if (n % 50 === 0) expect(table.matching(below(1))).toHaveLength(1)
    }
    expect(table.allowedRecords.columnBytes).toBeLessThan(10_000)
  })
})

test('equal values of a payload key are stored once', () => {
  const bytesOf = (values: readonly unknown[]) => {
    const column = new PayloadColumn()
    for (const value of values) column.add(value)
    return column.bytes
  }
  for (const value of ['red', 7, ['red', 'blue'], { a: 1 }])
    expect(bytesOf(Array(64).fill(value)) - bytesOf([value])).toBe(0)
})
