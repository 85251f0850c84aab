import fc from 'fast-check'
import { expect, test } from 'vitest'
import { crossValidate } from '../../src/evaluation/cross-validate.ts'
import { mean } from '../../src/evaluation/resample.ts'

test('chooses a candidate that is better on all questions, and the first of equally good ones', () => {
  const [low, high] = [0.2, 0.7].map(score => Array.from({ length: 12 }, () => score))
  const { heldOut, chosen, best } = crossValidate([low!, high!, high!], 4)
  expect({ heldOut, chosen, best }).toEqual({ heldOut: high, chosen: [1, 1, 1, 1], best: 1 })
})

test('does not choose a candidate by the question that it is measured on', () => {
  // Each candidate is best on one question only, so without this question, it is among the worst.
  const candidates = Array.from({ length: 6 }, (_, candidate) =>
    Array.from({ length: 6 }, (_, question) => (question === candidate ? 1 : 0)),
  )
  expect(mean(crossValidate(candidates, 6).heldOut)).toBe(0)
})

test('each question is scored once, by the candidate of its fold, and the folds have equal sizes', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 2, max: 5 }),
      fc.integer({ min: 10, max: 40 }),
      (foldCount, questionCount) => {
        const one = Array.from({ length: questionCount }, (_, question) => question)
        const { heldOut, chosen } = crossValidate([one], foldCount)
        expect(heldOut).toEqual(one)
        expect(chosen).toEqual(Array.from({ length: foldCount }, () => 0))
      },
    ),
  )
})
