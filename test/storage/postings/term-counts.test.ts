import { expect, test } from 'vitest'
import { TermCounter } from '../../../src/storage/sqlite/postings/term-counter.ts'
import { TermSketch } from '../../../src/storage/sqlite/postings/term-sketch.ts'
import { recordOf, stageForTest } from './stage.ts'
import { index } from './stage-connection.ts'

test.each([0, 1, 50, 5_000, 40_000, 60_000, 300_000])('the estimate for %i terms is within 3%%', terms => {
  const [even, odd] = [new TermSketch(), new TermSketch()]
  for (let n = 0; n < terms; n++) {
    const sketch = n % 2 === 0 ? even : odd
    sketch.add(`term${n}`)
    sketch.add(`term${n}`)
  }
  even.addAll(odd)
  expect(Math.abs(even.estimate() - terms)).toBeLessThanOrEqual(0.03 * terms)
})

test('counts the distinct terms of all segments, also after changes and merges', async () => {
  const stage = stageForTest()
  const counter = new TermCounter(stage.connection)
  expect(await counter.count(index.collection)).toBe(0)
  for (let record = 1; record <= 12; record++)
    stage.write(() => stage.writer.add(index, [recordOf(record, `apple w${record} w${record + 1}`)]))
  expect(await counter.count(index.collection)).toBe(14)
  stage.write(() => stage.writer.remove(index, [1, 2, 3, 4, 5, 6]))
  stage.merge()
  expect(await counter.count(index.collection)).toBe(8)
  expect(await counter.count(99)).toBeNull()
})

test('counts the segments that replace those that a merge deletes during the count', async () => {
  const stage = stageForTest()
  const words = Array.from({ length: 6_000 }, (_, n) => `w${n}`).join(' ')
  stage.write(() => stage.writer.add(index, [recordOf(1, words), recordOf(2, words)]))
  const counting = new TermCounter(stage.connection).count(index.collection)
  stage.write(() => stage.writer.remove(index, [1]))
  stage.merge()
  expect(Math.abs((await counting)! - 6_000)).toBeLessThan(200)
})
