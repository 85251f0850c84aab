import { expect, onTestFinished } from 'vitest'
import type { ScoredRecord } from '../../../src/storage/content.ts'
import type { PostingRecord } from '../../../src/storage/sqlite/postings/segment-builder.ts'
import { countTerms } from './reference.ts'
import { createStage, type Stage } from './stage-connection.ts'

export const allRecords = undefined

/** Like {@link createStage}, and closes the connection after the test. */
export function stageForTest(path?: string): Stage {
  const stage = createStage(path)
  onTestFinished(() => stage.connection.close())
  return stage
}

/** Creates a record from words. */
export function recordOf(record: number, text: string, title = ''): PostingRecord {
  const split = (words: string) => countTerms(words.split(' ').filter(word => word !== ''))
  return { record, title: split(title), text: split(text) }
}

/** Creates words of one term each. */
export function wordsOf(...terms: string[]): { terms: string[]; weight: number }[] {
  return terms.map(term => ({ terms: [term], weight: 1 }))
}

const TOLERANCE = 1e-9

/**
 * Requires the best `limit` of the expected records, with their scores, in order. Records whose expected scores differ by
 * rounding only may be in either order.
 */
export function expectBest(
  actual: readonly ScoredRecord[],
  expected: readonly ScoredRecord[],
  limit: number,
): void {
  const scores = new Map(expected.map(({ record, score }) => [record, score]))
  const isRight = ({ record, score }: ScoredRecord) => Math.abs(score - (scores.get(record) ?? 0)) < TOLERANCE
  expect(actual.filter(each => !isRight(each))).toEqual([])
  expect(actual).toEqual([...actual].sort((a, b) => b.score - a.score || a.record - b.record))
  expect(new Set(actual.map(({ record }) => record)).size).toBe(Math.min(limit, expected.length))
  const best = new Set(actual.map(({ record }) => record))
  const worst = actual.at(-1)?.score ?? Number.POSITIVE_INFINITY
  expect(expected.filter(({ record, score }) => !best.has(record) && score > worst + TOLERANCE)).toEqual([])
}
