import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  feedbackQuery,
  fuseEach,
  fuseLists,
  rerank,
  sentenceWeight,
} from '../../src/knowledge/search/fusion.ts'
import type { ScoredRecord } from '../../src/storage/content.ts'

/** More candidates than in any list here, so no list is truncated. */
const whole = 100

const score = fc.double({ min: -1e6, max: 1e6, noNaN: true })
const list = fc.uniqueArray(fc.record({ record: fc.nat({ max: 50 }), score }), {
  selector: ({ record }) => record,
  maxLength: 30,
})
const weight = fc.double({ min: 0, max: 1, noNaN: true })
const vectorOf = (length: number) =>
  fc
    .array(fc.float({ min: -1, max: 1, noNaN: true }), { minLength: length, maxLength: length })
    .map(numbers => Float32Array.from(numbers))
const mixed = (
  vector: readonly ScoredRecord[],
  lexical: readonly ScoredRecord[],
  lexicalWeight: number,
  poolSize = whole,
) => fuseLists({ vector, lexical, lexicalWeight, poolSize })
const lengthOf = (vector: Float32Array) => Math.hypot(...vector)
const scored = (...scores: number[]) => scores.map((score, record) => ({ record, score }))
/** Scores by record of a single list. */
const scaledVectors = (...scores: number[]) => scoresOf(mixed(scored(...scores), [], 0))
const scaledWords = (poolSize: number, ...scores: number[]) =>
  scoresOf(mixed([], scored(...scores), 1, poolSize))
const scoresOf = (fused: readonly ScoredRecord[]) =>
  fused.toSorted((a, b) => a.record - b.record).map(({ score }) => score)

describe('scaling', () => {
  test.each([
    [[7], [1]],
    [
      [0.2, 0.6, 0.4],
      [0, 1, 0.5],
    ],
    [
      [0.3, 0.3],
      [1, 1],
    ],
  ])('similarities %j become %j, with the lowest as the minimum', (scores, expected) => {
    expect(scaledVectors(...scores)).toEqual(expected.map(value => expect.closeTo(value, 12)))
  })

  test.each([
    [
      [0, 0],
      [0, 0],
    ],
    [
      [-3, -1],
      [0, 0],
    ],
    [
      [0.5, -0.5, 1],
      [0.5, 0, 1],
    ],
  ])('similarities %j become %j, because zero and less are not scaled up', (scores, expected) => {
    expect(scaledVectors(...scores)).toEqual(expected)
  })

  test('the minimum of lexical scores is 0, or the lowest score of a truncated list', () => {
    expect(scaledWords(whole, 6, 4, 2)).toEqual([1, 4 / 6, 2 / 6])
    expect(scaledWords(3, 6, 4, 2)).toEqual([1, 0.5, 0])
  })
})

describe('fuse', () => {
  test('combines both rankings with their weights', () => {
    const vector = [
      { record: 1, score: 0.9 },
      { record: 2, score: 0.5 },
      { record: 3, score: 0.1 },
    ]
    const lexical = [
      { record: 2, score: 12 },
      { record: 4, score: 2 },
    ]
    expect(mixed(vector, lexical, 0.5)).toEqual([
      { record: 2, score: 0.75, scaled: { vector: 0.5, lexical: 1, sentences: 0 } },
      { record: 1, score: 0.5, scaled: { vector: 1, lexical: 0, sentences: 0 } },
      { record: 4, score: 1 / 12, scaled: { vector: 0, lexical: 1 / 6, sentences: 0 } },
      { record: 3, score: 0, scaled: { vector: 0, lexical: 0, sentences: 0 } },
    ])
  })

  test('orders equal scores by the lexical score', () => {
    const [first, second] = mixed(scored(1, 0), [{ record: 1, score: 3 }], 0.5)
    expect([first, second]).toMatchObject([
      { record: 1, score: 0.5 },
      { record: 0, score: 0.5 },
    ])
  })

  test('with weight 0.5 or more, a single lexical hit is first, regardless of vectors', () => {
    const half = fc.double({ min: 0.5, max: 1, noNaN: true })
    fc.assert(
      fc.property(list, half, fc.nat(), (vector, lexicalWeight, pick) => {
        const record = vector[pick % (vector.length + 1)]?.record ?? 1_000
        expect(mixed(vector, [{ record, score: 1 }], lexicalWeight)[0]!.record).toBe(record)
      }),
    )
  })

  test('a low-ranked record does not change the order of the others', () => {
    const similarities = fc.array(fc.double({ min: 0.01, max: 1, noNaN: true }), { maxLength: 20 })
    fc.assert(
      fc.property(similarities, list, weight, (similar, found, lexicalWeight) => {
        const vector = [...scored(...similar, 0)]
        const lexical = found.flatMap(({ score }, record) => (score > 0 ? [{ record, score }] : []))
        const added = { record: 1_000, score: -0.2 }
        const after = mixed([...vector, added], lexical, lexicalWeight)
        expect(after.filter(({ record }) => record !== added.record)).toEqual(
          mixed(vector, lexical, lexicalWeight),
        )
      }),
    )
  })

  test('orders numbered records by number', () => {
    const vector = [10, 9, 100].map(record => ({ record, score: 1 }))
    expect(mixed(vector, [], 0.5).map(({ record }) => record)).toEqual([9, 10, 100])
  })

  test('contains every record once, best first, with ties ordered by lexical score and then by record', () => {
    fc.assert(
      fc.property(list, list, weight, (vector, lexical, lexicalWeight) => {
        const fused = mixed(vector, lexical, lexicalWeight)
        const records = [...vector, ...lexical].map(({ record }) => record)
        expect(fused.map(({ record }) => record).sort()).toEqual([...new Set(records)].sort())
        for (const { score } of fused) expect(score >= 0 && score <= 1).toBe(true)
        for (let at = 1; at < fused.length; at++) {
          const [before, after] = [fused[at - 1]!, fused[at]!]
          expect(before.score).toBeGreaterThanOrEqual(after.score)
          if (before.score === after.score)
            expect(before.scaled.lexical).toBeGreaterThanOrEqual(after.scaled.lexical)
          if (before.score === after.score && before.scaled.lexical === after.scaled.lexical)
            expect(before.record < after.record).toBe(true)
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

  test('a higher score in one list never lowers the rank', () => {
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

  test('weight 0 ranks like the vector list, weight 1 like the lexical list', () => {
    fc.assert(
      fc.property(list, list, (vector, lexical) => {
        const found = (fused: readonly ScoredRecord[]) =>
          new Map(fused.flatMap(({ record, score }) => (score > 0 ? [[record, score]] : [])))
        expect(found(mixed(vector, lexical, 0))).toEqual(found(mixed(vector, [], 0)))
        expect(found(mixed(vector, lexical, 1))).toEqual(found(mixed([], lexical, 1)))
      }),
    )
  })
})

describe('fuseEach', () => {
  const lists = fc.record({
    vector: list,
    lexical: list,
    lexicalWeight: weight,
    poolSize: fc.constant(whole),
    scale: fc.constantFrom('x', 'y'),
  })

  test('contains every record of each list with a score from 0 to 1, and equals fuse for one list', () => {
    fc.assert(
      fc.property(fc.array(lists, { minLength: 1, maxLength: 4 }), several => {
        const fused = fuseEach(several)
        expect(fused).toHaveLength(several.length)
        for (const [at, one] of several.entries()) {
          const records = [...one.vector, ...one.lexical].map(({ record }) => record)
          expect(new Set(fused[at]!.map(({ record }) => record))).toEqual(new Set(records))
          for (const { score } of fused[at]!) expect(score >= 0 && score <= 1).toBe(true)
        }
        expect(fuseEach([several[0]!])[0]).toEqual(fuseLists(several[0]!))
      }),
    )
  })

  test('compares lexical scores across all lists, and similarities within one scale', () => {
    const only = (score: number, scale: string) => ({
      vector: [{ record: 1, score }],
      lexical: [{ record: 1, score: score * 10 }],
      lexicalWeight: 0.5,
      poolSize: whole,
      scale,
    })
    const scores = fuseEach([only(0.8, 'x'), only(0.2, 'x'), only(0.4, 'y')]).map(([first]) => first!.score)
    expect(scores).toEqual([1, 0.125, 0.75])
  })
})

describe('rerank', () => {
  const ranked = scored(9, 7, 5, 3)

  test('moves up records with a high lexical rank, and keeps the scores of the positions', () => {
    const lexical = [3, 1].map(record => ({ record, score: 1 }))
    expect(rerank(ranked, lexical, 0.5)).toEqual([
      { record: 3, score: 9 },
      { record: 1, score: 7 },
      { record: 0, score: 5 },
      { record: 2, score: 3 },
    ])
  })

  test('a share of 0 changes nothing, and neither does an unknown record', () => {
    expect(rerank(ranked, scored(1, 1, 1).reverse(), 0)).toEqual(ranked)
    expect(rerank(ranked, scored(0, 0, 0, 0, 1).slice(4), 0.5)).toEqual(ranked)
  })

  test('a record that is first in both lists stays first', () => {
    fc.assert(
      fc.property(list, list, weight, (found, lexical, share) => {
        fc.pre(found.length > 0)
        const [best] = found
        const words = [best!, ...lexical.filter(({ record }) => record !== best!.record)]
        expect(rerank(found, words, share)[0]!.record).toBe(best!.record)
      }),
    )
  })
})

describe('feedbackQuery', () => {
  test('moves the query towards the weighted mean of the passages', () => {
    const [x, y] = [Float32Array.of(1, 0), Float32Array.of(0, 1)]
    const passages = [
      { vector: y, weight: 3 },
      { vector: x, weight: 1 },
    ]
    const moved = feedbackQuery(x, passages, 1)
    const length = Math.hypot(1.25, 0.75)
    expect([...moved]).toEqual([expect.closeTo(1.25 / length), expect.closeTo(0.75 / length)])
  })

  test('does not change its arguments, and returns the query if nothing was found', () => {
    const query = Float32Array.of(3, 4)
    expect(feedbackQuery(query, [])).toEqual(Float32Array.of(0.6, 0.8))
    expect(query).toEqual(Float32Array.of(3, 4))
  })

  test('returns a finite vector of length 1 or 0', () => {
    const share = fc.double({ min: 1e-6, max: 1, noNaN: true })
    const passages = fc.array(fc.record({ vector: vectorOf(8), weight: share }), { maxLength: 5 })
    fc.assert(
      fc.property(vectorOf(8), passages, weight, (query, top, beta) => {
        const moved = feedbackQuery(query, top, beta)
        expect(moved.every(Number.isFinite)).toBe(true)
        expect(lengthOf(moved) === 0 || Math.abs(lengthOf(moved) - 1) < 1e-5).toBe(true)
      }),
    )
  })
})

describe('sentences', () => {
  test.each([
    [0, 0.85],
    [0.2, 0.85],
    [0.4, 0.85],
    [0.5, 0.575],
    [0.6, 0.3],
    [0.8, 0.15],
    [1, 0],
  ])('with a coverage of %d, their weight is %d', (coverage, expected) => {
    expect(sentenceWeight(coverage)).toBeCloseTo(expected)
  })

  test('share the score with the other lists by their weight', () => {
    const lists = {
      vector: [{ record: 1, score: 0.9 }],
      lexical: [{ record: 2, score: 7 }],
      lexicalWeight: 0.5,
      sentences: { list: [{ record: 3, score: 0.4 }], weight: 0.6 },
      poolSize: whole,
    }
    const fused = fuseLists(lists)
    expect(fused.map(({ record }) => record)).toEqual([3, 2, 1])
    expect(fused.map(one => one.score)).toEqual([0.6, 0.2, 0.2].map(value => expect.closeTo(value)))
  })

  test('change nothing with weight 0', () => {
    fc.assert(
      fc.property(list, list, list, weight, (vector, lexical, sentences, lexicalWeight) => {
        const lists = { vector, lexical, lexicalWeight, poolSize: whole }
        const scores = (fused: ReturnType<typeof fuseLists>) =>
          new Map(fused.filter(one => one.score > 0).map(one => [one.record, one.score]))
        expect(scores(fuseLists({ ...lists, sentences: { list: sentences, weight: 0 } }))).toEqual(
          scores(fuseLists(lists)),
        )
      }),
    )
  })
})
