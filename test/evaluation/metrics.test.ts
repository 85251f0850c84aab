import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { gradeHits } from '../../src/evaluation/grade-hits.ts'
import { firstRelevantRank, measureRanking, metricNames } from '../../src/evaluation/metrics.ts'

const grade = fc.integer({ min: 0, max: 4 })
const grades = fc.array(grade, { maxLength: 40 })
/** Rankings that contain all relevant answers, or some of them. */
const rankings = fc.record({
  ranked: grades,
  missed: fc.array(fc.integer({ min: 1, max: 4 }), { maxLength: 5 }),
})
const relevantOf = ({ ranked, missed }: { ranked: number[]; missed: number[] }) => [
  ...ranked.filter(value => value > 0),
  ...missed,
]

describe('metrics of a ranking', () => {
  test.each([
    {
      name: 'the example of Järvelin and Kekäläinen with a gain of 3, 2, 3, 0, 1, 2',
      ranked: [3, 2, 3, 0, 1, 2],
      relevant: [3, 3, 2, 2, 1],
      // 3 + 2/1.585 + 3/2 + 1/2.585 + 2/2.807 = 6.861; ideally 3 + 3/1.585 + 2/2 + 2/2.322 + 1/2.585 = 7.141
      metrics: { 'ndcg@10': 0.961, 'recall@10': 1, 'mrr@10': 1, map: (1 + 1 + 1 + 4 / 5 + 5 / 6) / 5 },
    },
    {
      name: 'one of two answers at rank 2',
      ranked: [0, 1],
      relevant: [1, 1],
      // 1/1.585, ideally 1 + 1/1.585
      metrics: { 'ndcg@10': 0.387, 'recall@10': 0.5, 'mrr@10': 0.5, map: 0.25 },
    },
    {
      name: 'an answer at rank 11, which only map counts',
      ranked: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
      relevant: [1],
      metrics: { 'ndcg@10': 0, 'recall@10': 0, 'mrr@10': 0, map: 1 / 11 },
    },
    {
      name: 'no results',
      ranked: [],
      relevant: [2],
      metrics: { 'ndcg@10': 0, 'recall@10': 0, 'mrr@10': 0, map: 0 },
    },
    {
      name: 'no answers',
      ranked: [0],
      relevant: [],
      metrics: { 'ndcg@10': 0, 'recall@10': 0, 'mrr@10': 0, map: 0 },
    },
  ])('$name', ({ ranked, relevant, metrics }) => {
    const measured = measureRanking({ ranked, relevant })
    for (const name of metricNames) expect(measured[name], name).toBeCloseTo(metrics[name], 3)
  })

  test('are from 0 to 1, and 1 for the best order of up to ten answers', () => {
    fc.assert(
      fc.property(rankings, drawn => {
        const relevant = relevantOf(drawn)
        const measured = measureRanking({ ranked: drawn.ranked, relevant })
        for (const name of metricNames) {
          expect(measured[name]).toBeGreaterThanOrEqual(0)
          expect(measured[name]).toBeLessThanOrEqual(1 + 1e-12)
        }
        if (relevant.length === 0 || relevant.length > 10) return
        const best = measureRanking({ ranked: [...relevant].sort((a, b) => b - a), relevant })
        for (const name of metricNames) expect(best[name]).toBeCloseTo(1)
      }),
    )
  })

  test('do not fall if a better answer moves up', () => {
    fc.assert(
      fc.property(rankings, fc.nat(), (drawn, at) => {
        const { ranked } = drawn
        const upper = ranked.length < 2 ? 0 : at % (ranked.length - 1)
        if (!(ranked[upper]! < ranked[upper + 1]!)) return
        const swapped = ranked.with(upper, ranked[upper + 1]!).with(upper + 1, ranked[upper]!)
        const relevant = relevantOf(drawn)
        const [before, after] = [ranked, swapped].map(list => measureRanking({ ranked: list, relevant }))
        for (const name of metricNames) expect(after![name]).toBeGreaterThanOrEqual(before![name] - 1e-12)
      }),
    )
  })

  test('have the rank of the first relevant result', () => {
    expect([[0, 0, 1, 2], [0], []].map(firstRelevantRank)).toEqual([3, undefined, undefined])
  })
})

describe('grading of search results', () => {
  const hit = (id: string, documentId: string | null, text = '') => ({ id, documentId, text })
  const judgment = (documentId: string | undefined, more: object = {}) => ({
    document: 'any',
    documentIds: new Set(documentId === undefined ? [] : [documentId]),
    grade: 4,
    ...more,
  })

  test('counts each document once if the judgments are about documents', () => {
    const hits = [hit('1', 'a'), hit('2', 'a'), hit('3', 'b'), hit('4', 'b'), hit('5', null), hit('6', 'c')]
    const judgments = [
      judgment('b', { grade: 2 }),
      judgment('c'),
      judgment('a', { grade: 0 }),
      judgment(undefined),
    ]
    expect(gradeHits(hits, judgments)).toEqual({ ranked: [0, 2, 0, 4], relevant: [4, 4, 2] })
  })

  test('counts passages if a judgment is about a passage', () => {
    const hits = [
      hit('1', 'a', 'Intro'),
      hit('2', 'a', '## How long  it takes ##\nWithin ten\ndays.'),
      hit('3', 'b', 'How long it takes'),
      hit('4', 'a', 'It is paid within TEN days'),
    ]
    const judgments = [
      judgment('a', { heading: 'how long it takes' }),
      judgment('a', { text: 'within ten days', grade: 1 }),
    ]
    expect(gradeHits(hits, judgments)).toEqual({ ranked: [0, 4, 1, 0], relevant: [4, 1] })
  })
})
