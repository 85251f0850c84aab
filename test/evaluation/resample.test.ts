import fc from 'fast-check'
import { expect, test } from 'vitest'
import { randomNumbers } from '../../src/base/random-numbers.ts'
import { estimateMean, pairedPValue } from '../../src/evaluation/resample.ts'

const values = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 1, maxLength: 30 })

test('the interval of equal values is the value', () => {
  expect(estimateMean([0.5, 0.5, 0.5])).toEqual({ value: 0.5, low: 0.5, high: 0.5 })
})

test('the interval of coin tosses is close to the normal approximation, and always the same', () => {
  const tosses = Array.from({ length: 400 }, (_, index) => index % 2)
  const { value, low, high } = estimateMean(tosses)
  expect(value).toBe(0.5)
  expect(low).toBeCloseTo(0.5 - 1.96 * (0.5 / 20), 1.7)
  expect(high).toBeCloseTo(0.5 + 1.96 * (0.5 / 20), 1.7)
  expect(estimateMean(tosses)).toEqual({ value, low, high })
})

test('an interval is within the range of the values', () => {
  fc.assert(
    fc.property(values, sample => {
      const { low, high } = estimateMean(sample)
      expect(low).toBeLessThanOrEqual(high)
      expect(low).toBeGreaterThanOrEqual(Math.min(...sample) - 1e-9)
      expect(high).toBeLessThanOrEqual(Math.max(...sample) + 1e-9)
    }),
    { numRuns: 20 },
  )
})

test('95 % of the intervals contain the mean of the distribution', () => {
  const random = randomNumbers(7)
  let covered = 0
  for (let run = 0; run < 200; run++) {
    const { low, high } = estimateMean(Array.from({ length: 60 }, random))
    if (low <= 0.5 && 0.5 <= high) covered++
  }
  expect(covered / 200).toBeGreaterThan(0.9)
  expect(covered / 200).toBeLessThan(0.99)
})

test.each([
  { name: 'no difference', differences: [0, 0, 0, 0], p: 1 },
  // Both signs of a sum of 8 equal differences: 2 of 256 permutations.
  { name: '8 equal differences', differences: Array.from({ length: 8 }, () => 0.1), p: 2 / 256 },
  // Of the 8 permutations of 1, 2, 4, only all-plus and all-minus reach 7.
  { name: 'three different ones', differences: [1, 2, 4], p: 2 / 8 },
  { name: 'differences that cancel', differences: [1, -1, 2, -2], p: 1 },
])('the p value of $name', ({ differences, p }) => {
  expect(pairedPValue(differences)).toBeCloseTo(p, 1.9)
  expect(pairedPValue(differences.map(difference => -difference))).toBeCloseTo(p, 1.9)
})

test('random differences are significant at 5 % in about 5 % of all samples', () => {
  const random = randomNumbers(11)
  let significant = 0
  for (let run = 0; run < 100; run++)
    if (pairedPValue(Array.from({ length: 30 }, () => random() - 0.5)) < 0.05) significant++
  expect(significant).toBeLessThanOrEqual(12)
})
