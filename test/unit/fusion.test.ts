import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { feedbackQuery, fuse, fuseEach, minMax, type Scored } from '../../src/knowledge/fusion.ts'

const score = fc.double({ min: -1e6, max: 1e6, noNaN: true })
const list = fc.uniqueArray(fc.record({ record: fc.string({ maxLength: 3 }), score }), {
  selector: ({ record }) => record,
  maxLength: 30,
})
const weight = fc.double({ min: 0, max: 1, noNaN: true })
const vectorOf = (length: number) =>
  fc
    .array(fc.float({ min: -1, max: 1, noNaN: true }), { minLength: length, maxLength: length })
    .map(numbers => Float32Array.from(numbers))
const mixed = <Id extends string | number>(
  vector: readonly Scored<Id>[],
  lexical: readonly Scored<Id>[],
  lexicalWeight: number,
) => fuse({ vector, lexical, lexicalWeight })
const lengthOf = (vector: Float32Array) => Math.hypot(...vector)

describe('minMax', () => {
  test.each([
    [[], []],
    [[7], [1]],
    [
      [0, 0],
      [1, 1],
    ],
    [
      [2, 6, 4],
      [0, 1, 0.5],
    ],
    [
      [-3, -1],
      [0, 1],
    ],
  ])('of %j is %j', (scores, expected) => {
    expect(minMax(scores)).toEqual(expected)
  })

  test('stays within 0 and 1 and keeps the order', () => {
    fc.assert(
      fc.property(fc.array(score, { minLength: 1 }), scores => {
        const stretched = minMax(scores)
        expect(Math.max(...stretched)).toBe(1)
        for (const value of stretched) expect(value >= 0 && value <= 1).toBe(true)
        const order = scores.map((_, at) => at).sort((a, b) => scores[a]! - scores[b]!)
        for (let at = 1; at < order.length; at++)
          expect(stretched[order[at]!]).toBeGreaterThanOrEqual(stretched[order[at - 1]!]!)
      }),
    )
  })
})

describe('fuse', () => {
  test('weighs both rankings', () => {
    const vector = [
      { record: 'a', score: 0.9 },
      { record: 'b', score: 0.5 },
      { record: 'c', score: 0.1 },
    ]
    const lexical = [
      { record: 'b', score: 12 },
      { record: 'd', score: 2 },
    ]
    expect(mixed(vector, lexical, 0.5)).toEqual([
      { record: 'b', score: 0.75 },
      { record: 'a', score: 0.5 },
      { record: 'c', score: 0 },
      { record: 'd', score: 0 },
    ])
  })

  test('orders numbered records by number', () => {
    const vector = [10, 9, 100].map(record => ({ record, score: 1 }))
    expect(mixed(vector, [], 0.5).map(({ record }) => record)).toEqual([9, 10, 100])
  })

  test('has every record once, best first, equal ones in the order of their records', () => {
    fc.assert(
      fc.property(list, list, weight, (vector, lexical, lexicalWeight) => {
        const fused = mixed(vector, lexical, lexicalWeight)
        const records = [...vector, ...lexical].map(({ record }) => record)
        expect(fused.map(({ record }) => record).sort()).toEqual([...new Set(records)].sort())
        for (const { score } of fused) expect(score >= 0 && score <= 1).toBe(true)
        for (let at = 1; at < fused.length; at++) {
          const [before, after] = [fused[at - 1]!, fused[at]!]
          expect(
            before.score > after.score || (before.score === after.score && before.record < after.record),
          ).toBe(true)
        }
      }),
    )
  })

  test('does not depend on the order of its lists', () => {
    fc.assert(
      fc.property(list, list, weight, (vector, lexical, lexicalWeight) => {
        expect(mixed(vector.toReversed(), lexical.toReversed(), lexicalWeight)).toEqual(
          mixed(vector, lexical, lexicalWeight),
        )
      }),
    )
  })

  test('a better score in one list never loses rank', () => {
    fc.assert(
      fc.property(list, list, weight, fc.nat(), (vector, lexical, lexicalWeight, pick) => {
        fc.pre(vector.length > 1)
        const chosen = vector[pick % vector.length]!
        const best = Math.max(...vector.map(({ score }) => score))
        const rank = (list: typeof vector) =>
          mixed(list, lexical, lexicalWeight).find(({ record }) => record === chosen.record)!.score
        const raised = vector.map(hit => (hit === chosen ? { ...hit, score: best } : hit))
        expect(rank(raised)).toBeGreaterThanOrEqual(rank(vector))
      }),
    )
  })

  test('weight 0 ranks as the vectors do, weight 1 as the words do', () => {
    fc.assert(
      fc.property(list, list, (vector, lexical) => {
        expect(mixed(vector, lexical, 0).filter(({ score }) => score > 0)).toEqual(
          mixed(vector, [], 0).filter(({ score }) => score > 0),
        )
        expect(mixed(vector, lexical, 1).filter(({ score }) => score > 0)).toEqual(
          mixed([], lexical, 1).filter(({ score }) => score > 0),
        )
      }),
    )
  })
})

describe('fuseEach', () => {
  const lists = fc.record({
    vector: list,
    lexical: list,
    lexicalWeight: weight,
    scale: fc.constantFrom('x', 'y'),
  })

  test('has every record of each, scored from 0 to 1, and is fuse where there is one', () => {
    fc.assert(
      fc.property(fc.array(lists, { minLength: 1, maxLength: 4 }), several => {
        const fused = fuseEach(several)
        expect(fused).toHaveLength(several.length)
        for (const [at, one] of several.entries()) {
          const records = [...one.vector, ...one.lexical].map(({ record }) => record)
          expect(new Set(fused[at]!.map(({ record }) => record))).toEqual(new Set(records))
          for (const { score } of fused[at]!) expect(score >= 0 && score <= 1).toBe(true)
        }
        expect(fuseEach([several[0]!])[0]).toEqual(fuse(several[0]!))
      }),
    )
  })

  test('words are compared over all, similarities over those of one scale', () => {
    const only = (score: number, scale: string) => ({
      vector: [{ record: 1, score }],
      lexical: [{ record: 1, score: score * 10 }],
      lexicalWeight: 0.5,
      scale,
    })
    const scores = fuseEach([only(0.9, 'x'), only(0.1, 'x'), only(0.5, 'y')]).map(([first]) => first!.score)
    expect(scores).toEqual([1, 0, 0.75])
  })
})

describe('feedbackQuery', () => {
  test('draws the query towards the mean of the first three', () => {
    const [x, y] = [Float32Array.of(1, 0), Float32Array.of(0, 1)]
    const drawn = feedbackQuery(x, [y, y, y, x], 1)
    expect(drawn[0]).toBeCloseTo(Math.SQRT1_2)
    expect(drawn[1]).toBeCloseTo(Math.SQRT1_2)
  })

  test('leaves its arguments alone, and is the query itself when nothing was found', () => {
    const query = Float32Array.of(3, 4)
    expect(feedbackQuery(query, [])).toEqual(Float32Array.of(0.6, 0.8))
    expect(query).toEqual(Float32Array.of(3, 4))
  })

  test('is finite and of length 1 or 0', () => {
    fc.assert(
      fc.property(vectorOf(8), fc.array(vectorOf(8), { maxLength: 5 }), weight, (query, top, beta) => {
        const drawn = feedbackQuery(query, top, beta)
        expect(drawn.every(Number.isFinite)).toBe(true)
        expect(lengthOf(drawn) === 0 || Math.abs(lengthOf(drawn) - 1) < 1e-5).toBe(true)
      }),
    )
  })
})
