import { randomNumbers } from '../src/base/random-numbers.ts'

const CENTERS = 2_000

/**
 * Returns a function that creates normalized vectors, the same in every run: points around 2,000 centers whose variance
 * decreases by component, like those of a text model. Components have six decimals, so that they survive JSON unchanged.
 */
export function clusteredVectors(dimension: number): () => Float32Array {
  const random = randomNumbers(7)
  const gaussian = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
  const spread = Float32Array.from({ length: dimension }, (_, at) => 1 / (1 + at / 20))
  const centers = Array.from({ length: CENTERS }, () => spread.map(value => value * gaussian()))
  return () => {
    const center = centers[Math.floor(random() * centers.length)]!
    const vector = center.map((value, at) => value + 0.5 * spread[at]! * gaussian())
    const norm = Math.hypot(...vector)
    return vector.map(value => Math.round((value / norm) * 1e6) / 1e6)
  }
}
