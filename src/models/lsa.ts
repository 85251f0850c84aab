import { randomNumbers } from '../base/random-numbers.ts'
import { unitVector } from '../base/unit-vector.ts'
import { rowBasis } from './lsa/basis.ts'
import { type Panels, panelEntry, roundUpToPanels } from './lsa/panels.ts'
import { countTerms, type EmbeddedPassage, frequencyWeight, weighTerms } from './lsa/weigh-terms.ts'

export type { EmbeddedPassage } from './lsa/weigh-terms.ts'

/** Default length of the vectors. */
export const lsaDimension = 128
const iterationsDefault = 4
/** Default maximum number of passages that a model is fitted to. */
export const fitSampleMax = 20_000
const seedDefault = 1
/** Share of the reported progress that counting the terms accounts for. */
const countingShare = 0.3

export interface FitOptions {
  /** Length of the vectors, 128 by default. */
  dimension?: number
  /** Seed of the random numbers. Models that are fitted with equal seeds and passages have identical bytes. */
  seed?: number
  /** Rounds of subspace iteration: at least 1, by default 4. More rounds do not measurably improve results. */
  iterations?: number
  /** Maximum number of passages to use. From a larger set, a uniform random sample of this size is used. */
  sampleMax?: number
  /** Called with the progress, from 0 to 1. */
  onProgress?(fraction: number): void
}

/**
 * Stored form of a model. `terms` contains one term per line. `weights` contains one float32 factor per term, followed
 * by the int8 directions of all terms.
 */
export interface EncodedLsaModel {
  dimension: number
  terms: string
  weights: Uint8Array
}

/**
 * Latent semantic analysis of the passages of a knowledge base. Terms that occur in similar contexts have similar
 * directions, so passages can be close even if they have no words in common.
 *
 * @see Deerwester et al., "Indexing by latent semantic analysis", JASIS 41(6), 1990
 */
export class LsaModel {
  readonly dimension: number
  readonly terms: readonly string[]
  readonly #termIndexes: ReadonlyMap<string, number>
  /** For each term, its rarity multiplied by the scale of its int8 direction. */
  readonly #factors: Float32Array
  readonly #directions: Int8Array

  private constructor(dimension: number, terms: string, factors: Float32Array, directions: Int8Array) {
    this.dimension = dimension
    this.terms = terms === '' ? [] : terms.split('\n')
    this.#termIndexes = new Map(this.terms.map((term, index) => [term, index]))
    this.#factors = factors
    this.#directions = directions
  }

  /**
   * Returns the vector of any passage or query. The vector has length 1, or is all zeros if the model contains none of
   * the terms. Takes `dimension` multiplications per distinct term.
   */
  embed(passage: EmbeddedPassage | string): Float32Array {
    const { dimension } = this
    const directions = this.#directions
    const sum = new Float64Array(dimension)
    for (const [term, count] of countTerms(
      typeof passage === 'string' ? { title: null, text: passage } : passage,
    )) {
      const index = this.#termIndexes.get(term)
      if (index === undefined) continue
      const weight = frequencyWeight(count) * this.#factors[index]!
      addScaled(sum, directions, index * dimension, weight)
    }
    return unitVector(sum)
  }

  encode(): EncodedLsaModel {
    const { dimension, terms } = this
    const weights = new Uint8Array(terms.length * (4 + dimension))
    weights.set(bytesOf(this.#factors))
    weights.set(bytesOf(this.#directions), terms.length * 4)
    return { dimension, terms: terms.join('\n'), weights }
  }

  /** Decodes a model. It embeds exactly like the encoded model. Throws if the fields do not match or are not finite. */
  static decode({ dimension, terms, weights }: EncodedLsaModel): LsaModel {
    // Bytes from a database can start at any offset of their buffer, but a Float32Array must be aligned.
    const { buffer } = new Uint8Array(weights)
    const count = weights.length / (4 + dimension)
    const factors = new Float32Array(buffer, 0, Math.floor(count))
    const model = new LsaModel(dimension, terms, factors, new Int8Array(buffer, factors.byteLength))
    if (model.terms.length !== count || !factors.every(Number.isFinite))
      throw new Error(
        `the stored LSA model is corrupt (${model.terms.length} terms, ${weights.length} bytes of weights)`,
      )
    return model
  }

  /** @internal Creates a model from a basis of term directions. Rounds the directions to eight bits per number. */
  static fromBasis(
    terms: readonly string[],
    rarities: Float64Array,
    basis: Panels,
    dimension: number,
  ): LsaModel {
    const factors = new Float32Array(terms.length)
    const directions = new Int8Array(terms.length * dimension)
    for (let term = 0; term < terms.length; term++) {
      let largest = 0
      for (let column = 0; column < dimension; column++)
        largest = Math.max(largest, Math.abs(panelEntry(basis, term, column)))
      if (largest === 0) continue
      factors[term] = (rarities[term]! * largest) / 127
      for (let column = 0; column < dimension; column++)
        directions[term * dimension + column] = Math.round((panelEntry(basis, term, column) / largest) * 127)
    }
    return new LsaModel(dimension, terms.join('\n'), factors, directions)
  }
}

const bytesOf = (array: Float32Array | Int8Array) =>
  new Uint8Array(array.buffer, array.byteOffset, array.byteLength)

/** Adds `values`, from `start`, multiplied by `factor`, to `sum`. Unrolled, which takes half the time. */
function addScaled(sum: Float64Array, values: Int8Array, start: number, factor: number): void {
  let column = 0
  for (; column + 3 < sum.length; column += 4) {
    sum[column]! += factor * values[start + column]!
    sum[column + 1]! += factor * values[start + column + 1]!
    sum[column + 2]! += factor * values[start + column + 2]!
    sum[column + 3]! += factor * values[start + column + 3]!
  }
  for (; column < sum.length; column++) sum[column]! += factor * values[start + column]!
}

/**
 * A random sample of items whose number is not known in advance. All samples are equally likely (reservoir sampling). It is the
 * same for the same items. If there are at most `size` items, it contains all, in order.
 *
 * @see Knuth, The Art of Computer Programming, volume 2, section 3.4.2, algorithm R
 */
export class Sample<T> {
  readonly items: T[] = []
  readonly #size: number
  readonly #next: () => number
  #count = 0

  constructor(size: number, seed = seedDefault) {
    this.#size = size
    this.#next = randomNumbers(seed)
  }

  add(item: T): void {
    this.#count++
    if (this.items.length < this.#size) {
      this.items.push(item)
      return
    }
    const place = Math.floor(this.#next() * this.#count)
    if (place < this.#size) this.items[place] = item
  }
}

/**
 * Fits a model to passages. Blocks the thread until it is done, so call it in a worker thread. Needs memory for the
 * distinct terms of each sampled passage, and for `dimension` float64 numbers per passage and per term.
 */
export function fitLsaModel(passages: readonly EmbeddedPassage[], options: FitOptions = {}): LsaModel {
  const { dimension = lsaDimension, seed = seedDefault, onProgress } = options
  const sample = new Sample<EmbeddedPassage>(options.sampleMax ?? fitSampleMax, seed)
  for (const passage of passages) sample.add(passage)
  const sampled = sample.items
  const { terms, rarities, matrix } = weighTerms(sampled)
  onProgress?.(countingShare)
  const basis = rowBasis(matrix, {
    width: roundUpToPanels(dimension),
    iterations: options.iterations ?? iterationsDefault,
    seed,
    onRound: (done, rounds) => onProgress?.(countingShare + (1 - countingShare) * (done / rounds)),
  })
  return LsaModel.fromBasis(terms, rarities, basis, dimension)
}
