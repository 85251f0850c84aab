import { unitVector } from '../base/unit-vector.ts'
import { randomNumbers, rowBasis } from './lsa/basis.ts'
import { type Panels, panelEntry, wholePanels } from './lsa/panels.ts'
import { countTerms, type EmbeddedPassage, frequencyWeight, weighTerms } from './lsa/weigh.ts'

export type { EmbeddedPassage } from './lsa/weigh.ts'

/** Default length of the vectors. */
export const lsaDimension = 128
const iterationsDefault = 4
const sampleMaxDefault = 20_000
const seedDefault = 1
/** Share of the progress that counting the passages makes up. */
const countingShare = 0.3

export interface FitOptions {
  /** Length of the vectors, 128 by default. */
  dimension?: number
  /** Seed of the random numbers. Equal seeds and passages give a model with identical bytes. */
  seed?: number
  /** Rounds of subspace iteration, at least 1, 4 by default. More rounds bring no measurable gain. */
  iterations?: number
  /** Maximum number of passages. A larger set is sampled uniformly at random. */
  sampleMax?: number
  /** Called occasionally with the progress, from 0 to 1. */
  onProgress?(fraction: number): void
}

/**
 * Stored form of a model: its terms, one per line, then a float32 factor per term, then all int8 directions.
 */
export interface EncodedLsaModel {
  dimension: number
  terms: string
  weights: Uint8Array
}

/**
 * Latent semantic analysis of the passages of a knowledge base. Terms that occur in similar contexts get
 * similar directions, so that passages can be close without a common word.
 *
 * @see Deerwester et al., "Indexing by latent semantic analysis", JASIS 41(6), 1990
 */
export class LsaModel {
  readonly dimension: number
  readonly terms: readonly string[]
  readonly #places: ReadonlyMap<string, number>
  /** Rarity of each term, multiplied by the scale of its int8 direction. */
  readonly #factors: Float32Array
  readonly #directions: Int8Array

  private constructor(dimension: number, terms: string, factors: Float32Array, directions: Int8Array) {
    this.dimension = dimension
    this.terms = terms === '' ? [] : terms.split('\n')
    this.#places = new Map(this.terms.map((term, place) => [term, place]))
    this.#factors = factors
    this.#directions = directions
  }

  /**
   * Returns the vector of a passage or a query, which need not be among the fitted passages. It has length 1,
   * or is all zero if the model knows none of the terms. Costs `dimension` multiplications per distinct term.
   */
  embed(passage: EmbeddedPassage | string): Float32Array {
    const { dimension } = this
    const directions = this.#directions
    const sum = new Float64Array(dimension)
    for (const [term, count] of countTerms(
      typeof passage === 'string' ? { title: null, text: passage } : passage,
    )) {
      const place = this.#places.get(term)
      if (place === undefined) continue
      const weight = frequencyWeight(count) * this.#factors[place]!
      const start = place * dimension
      for (let at = 0; at < dimension; at++) sum[at]! += weight * directions[start + at]!
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

  /** Decodes a model. It embeds exactly like the encoded one. Throws if the parts do not match. */
  static decode({ dimension, terms, weights }: EncodedLsaModel): LsaModel {
    // Bytes from a database can start at any offset of their buffer, but a Float32Array must be aligned.
    const { buffer } = new Uint8Array(weights)
    const count = weights.length / (4 + dimension)
    const factors = new Float32Array(buffer, 0, Math.floor(count))
    const model = new LsaModel(dimension, terms, factors, new Int8Array(buffer, factors.byteLength))
    if (model.terms.length !== count || !factors.every(Number.isFinite))
      throw new Error(`${weights.length} bytes of weights are no LSA model of ${model.terms.length} terms`)
    return model
  }

  /** @internal Creates the model of a term basis, with directions rounded to eight bits per number. */
  static of(terms: readonly string[], rarities: Float64Array, basis: Panels, dimension: number): LsaModel {
    const factors = new Float32Array(terms.length)
    const directions = new Int8Array(terms.length * dimension)
    for (let term = 0; term < terms.length; term++) {
      let largest = 0
      for (let at = 0; at < dimension; at++)
        largest = Math.max(largest, Math.abs(panelEntry(basis, term, at)))
      if (largest === 0) continue
      factors[term] = (rarities[term]! * largest) / 127
      for (let at = 0; at < dimension; at++)
        directions[term * dimension + at] = Math.round((panelEntry(basis, term, at) / largest) * 127)
    }
    return new LsaModel(dimension, terms.join('\n'), factors, directions)
  }
}

const bytesOf = (array: Float32Array | Int8Array) =>
  new Uint8Array(array.buffer, array.byteOffset, array.byteLength)

/** Samples items by selection sampling: every subset of the size is equally likely, and the order is kept. */
function sample<T>(items: readonly T[], size: number, seed: number): readonly T[] {
  if (items.length <= size) return items
  const next = randomNumbers(seed)
  let needed = size
  return items.filter((_, at) => {
    const taken = ((next() + 1) / 2) * (items.length - at) < needed
    if (taken) needed--
    return taken
  })
}

/**
 * Fits a model to passages. Blocks until it is done, so call it in a worker thread. Needs memory for the
 * distinct terms of the sampled passages, and 128 float64 per passage and term.
 */
export function fitLsaModel(passages: readonly EmbeddedPassage[], options: FitOptions = {}): LsaModel {
  const { dimension = lsaDimension, seed = seedDefault, onProgress } = options
  const sampled = sample(passages, options.sampleMax ?? sampleMaxDefault, seed)
  const { terms, rarities, matrix } = weighTerms(sampled)
  onProgress?.(countingShare)
  const basis = rowBasis(matrix, {
    width: wholePanels(dimension),
    iterations: options.iterations ?? iterationsDefault,
    seed,
    onRound: (done, rounds) => onProgress?.(countingShare + (1 - countingShare) * (done / rounds)),
  })
  return LsaModel.of(terms, rarities, basis, dimension)
}
