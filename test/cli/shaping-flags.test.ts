import { expect, test } from 'vitest'
import { shapingOptions } from '../../src/cli/passages/shaping-flags.ts'

test.each([
  [{}, {}],
  [
    { diversity: 0.3, neighbors: 1 },
    { diversity: 0.3, neighbors: 1 },
  ],
  [{ group: true }, { groupBy: 'document' }],
  [
    { group: true, 'per-group': 2 },
    { groupBy: 'document', perGroup: 2 },
  ],
  [
    { boost: ['2: type = manual', '0.5:lang=de'] },
    {
      boosts: [
        { factor: 2, filter: { type: 'manual' } },
        { factor: 0.5, filter: { lang: 'de' } },
      ],
    },
  ],
  [
    { recency: '1.5: 30d' },
    { boosts: [{ factor: 1.5, recency: { halfLifeDays: 30, field: 'ingestedAt' } }] },
  ],
  [
    { recency: '2: 12h published on' },
    { boosts: [{ factor: 2, recency: { halfLifeDays: 0.5, field: 'published on' } }] },
  ],
])('the flags %j are the fields %j', (flags, fields) => {
  expect(shapingOptions(flags)).toEqual(fields)
})

test.each([
  [
    { boost: ['type = manual'] },
    '--boost "type = manual" does not start with a factor from 0.1 to 10 and a colon',
  ],
  [{ boost: ['11: type = manual'] }, 'does not start with a factor from 0.1 to 10 and a colon'],
  [{ boost: ['2: type'] }, '--boost "type": an operator is missing after "type" (column 5)'],
  [{ recency: '30d' }, '--recency "30d" does not start with a factor'],
  [{ recency: '2: soon' }, '--recency is "soon", which is not a duration'],
])('rejects %j', (flags, message) => {
  expect(() => shapingOptions(flags)).toThrow(message)
})

test('suggests a complete value for an invalid half-life', () => {
  expect(() => shapingOptions({ recency: '2: 30' })).toThrow(
    expect.objectContaining({ next: ["--recency '2: 30d'"] }),
  )
})
