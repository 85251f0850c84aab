import { randomNumbers } from '../base/random-numbers.ts'

const seed = 1
const bootstrapSamples = 2_000
const permutations = 10_000
/** Share of the bootstrap means below the interval, and above it. */
const tailShare = 0.025

/** A mean with its confidence interval. */
export interface Estimate {
  readonly value: number
  /** Ends of the 95 % confidence interval. */
  readonly low: number
  readonly high: number
}

export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}

/**
 * Estimates a mean with its 95 % confidence interval by the percentile bootstrap. Equal values have equal intervals.
 *
 * @param values  at least one value
 * @see Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapter 13
 */
export function estimateMean(values: readonly number[]): Estimate {
  const random = randomNumbers(seed)
  const means = Float64Array.from({ length: bootstrapSamples }, () => {
    let sum = 0
    for (let drawn = 0; drawn < values.length; drawn++) sum += values[Math.floor(random() * values.length)]!
    return sum / values.length
  }).sort()
  const tail = Math.floor(tailShare * bootstrapSamples)
  return { value: mean(values), low: means[tail]!, high: means[bootstrapSamples - 1 - tail]! }
}

/**
 * Returns the two-sided p value of a paired randomization test: the probability of a mean at least as far from zero, if
 * the sign of each difference were random.
 *
 * @param differences  difference per question, at least one
 * @see Smucker, Allan and Carterette, A Comparison of Statistical Significance Tests for Information Retrieval
 *   Evaluation, 2007
 */
export function pairedPValue(differences: readonly number[]): number {
  const random = randomNumbers(seed)
  const observed = Math.abs(sum(differences)) - Number.EPSILON * differences.length
  let extreme = 0
  for (let permutation = 0; permutation < permutations; permutation++) {
    let total = 0
    for (const difference of differences) total += random() < 0.5 ? difference : -difference
    if (Math.abs(total) >= observed) extreme++
  }
  return (extreme + 1) / (permutations + 1)
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
