import fc from 'fast-check'
import { expect, test } from 'vitest'
import { fitPassages, jsonBytes } from '../../../src/agents/tools/passage-budget.ts'

const text = fc
  .array(fc.oneof(fc.string({ unit: 'grapheme', maxLength: 20 }), fc.constantFrom('"\n', '語。', 'tungsten')))
  .map(words => words.join(' ').repeat(3))

test('passages together stay within their budget, and the best ones stay whole', () => {
  fc.assert(
    fc.property(
      fc.array(text, { maxLength: 12 }),
      fc.integer({ min: 480, max: 6_000 }),
      (texts, bytesMax) => {
        const heads = texts.map((_, at) => (at * 37) % 300)
        fc.pre(texts.length === 0 || heads[0]! + 480 <= bytesMax)
        const excerpts = fitPassages(texts, 'tungsten', bytesMax, heads)
        const spent = excerpts.reduce((sum, excerpt, at) => sum + jsonBytes(excerpt.text) + heads[at]!, 0)
        expect(spent).toBeLessThanOrEqual(bytesMax)
        if (texts.length > 0) expect(excerpts.length).toBeGreaterThan(0)
        for (const [at, excerpt] of excerpts.entries())
          if (!excerpt.isCut) expect(excerpt.text).toBe(texts[at])
      },
    ),
  )
})

test('hits stay whole in rank order; the next one gets the remaining room, and the others get short windows', () => {
  const texts = Array.from({ length: 5 }, (_, at) => `Passage ${at}. ${'Some words. '.repeat(80)}`)
  const excerpts = fitPassages(texts, 'passage', 3_500)
  expect(excerpts.map(({ isCut }) => isCut)).toEqual([false, false, true, true, true])
  const [, , third, fourth] = excerpts.map(excerpt => excerpt.text.length)
  expect(third).toBeGreaterThanOrEqual(fourth!)
  expect(fourth).toBeGreaterThan(300)
})

test('passages without room for a short window are left out, except the first', () => {
  const texts = Array.from({ length: 8 }, () => 'Some words. '.repeat(80))
  expect(fitPassages(texts, 'words', 1_500)).toHaveLength(3)
  expect(fitPassages(texts, 'words', 100)).toHaveLength(1)
})
