import { fnv1a, mixBits } from '../../../base/fnv1a.ts'

const INDEX_BITS = 14
const REGISTERS = 1 << INDEX_BITS
const RANK_BITS = 32 - INDEX_BITS

/**
 * Estimates the number of distinct terms in one or several segments, with a standard error of 0.8%.
 *
 * This is HyperLogLog with the improved estimator of Ertl.
 *
 * @see https://arxiv.org/abs/1702.01284
 */
export class TermSketch {
  readonly #registers = new Uint8Array(REGISTERS)

  add(term: string): void {
    const hash = mixBits(fnv1a(term))
    const index = hash >>> RANK_BITS
    const rank = Math.min(Math.clz32(hash << INDEX_BITS), RANK_BITS) + 1
    if (rank > this.#registers[index]!) this.#registers[index] = rank
  }

  /** Adds all terms of another sketch. */
  addAll(other: TermSketch): void {
    for (let index = 0; index < REGISTERS; index++)
      if (other.#registers[index]! > this.#registers[index]!)
        this.#registers[index] = other.#registers[index]!
  }

  estimate(): number {
    const counts = new Array<number>(RANK_BITS + 2).fill(0)
    for (const rank of this.#registers) counts[rank]!++
    let z = REGISTERS * tau(1 - counts[RANK_BITS + 1]! / REGISTERS)
    for (let rank = RANK_BITS; rank > 0; rank--) z = 0.5 * (z + counts[rank]!)
    z += REGISTERS * sigma(counts[0]! / REGISTERS)
    return Math.round((REGISTERS * REGISTERS) / (2 * Math.LN2 * z))
  }
}

/** Weight of the registers that no term has reached. */
function sigma(share: number): number {
  if (share === 1) return Number.POSITIVE_INFINITY
  let [power, sum, previous] = [share, share, -1]
  for (let factor = 1; sum !== previous; factor *= 2) {
    power *= power
    previous = sum
    sum += power * factor
  }
  return sum
}

/** Weight of the registers whose rank is the highest possible one. */
function tau(share: number): number {
  if (share === 0 || share === 1) return 0
  let [root, sum, previous] = [share, 1 - share, -1]
  for (let factor = 0.5; sum !== previous; factor /= 2) {
    root = Math.sqrt(root)
    previous = sum
    sum -= (1 - root) ** 2 * factor
  }
  return sum / 3
}
