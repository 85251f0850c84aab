import { unitVector } from '../base/unit-vector.ts'
import { countTerms, frequencyWeight, type Passage } from './lsa/weigh.ts'

/** Length of the vectors, the same as that of the fitted model that takes their place. */
export const placeholderDimension = 128
/** Each feature moves so many numbers of the vector, so that two features rarely coincide. */
const placesPerFeature = 4
/** All character grams of a term together weigh as much as this share of the term itself, squared lengths compared. */
const gramWeight = 0.5
const gramLengths = [3, 4]
const termSeed = 0x811c9dc5
const gramSeed = 0x050c5d1f

/** FNV-1a over UTF-16 units. */
function hash(text: string, seed: number): number {
  let state = seed
  for (let at = 0; at < text.length; at++) state = Math.imul(state ^ text.charCodeAt(at), 0x01000193)
  return state
}

/** Spreads the bits of a hash (the finaliser of MurmurHash3). */
function mix(state: number): number {
  let mixed = Math.imul(state ^ (state >>> 16), 0x85ebca6b)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
  return mixed ^ (mixed >>> 16)
}

function addFeature(sum: Float64Array, feature: number, weight: number): void {
  let state = feature
  for (let place = 0; place < placesPerFeature; place++) {
    state = mix(state + 0x9e3779b9)
    sum[(state >>> 1) % placeholderDimension]! += state & 1 ? weight : -weight
  }
}

function gramsOf(term: string): string[] {
  const bounded = `^${term}$`
  return gramLengths.flatMap(length =>
    Array.from({ length: Math.max(0, bounded.length - length + 1) }, (_, at) =>
      bounded.slice(at, at + length),
    ),
  )
}

/**
 * A vector of a passage or a query that needs no model: its terms and their runs of 3 and 4 characters, hashed with
 * signs into 128 numbers. Length 1, or all zero for a text without terms; the same text gives the same vector in
 * every process. It finds shared words and spellings, not meaning, and on Cranfield it drags a hybrid ranking below the
 * lexical one unless lexical weighs .8 or more.
 *
 * @see Weinberger et al., "Feature hashing for large scale multitask learning", ICML 2009
 */
export function placeholderEmbed(passage: Passage | string): Float32Array {
  const sum = new Float64Array(placeholderDimension)
  for (const [term, count] of countTerms(
    typeof passage === 'string' ? { title: null, text: passage } : passage,
  )) {
    const weight = frequencyWeight(count)
    addFeature(sum, hash(term, termSeed), weight)
    const grams = gramsOf(term)
    for (const gram of grams)
      addFeature(sum, hash(gram, gramSeed), (weight * gramWeight) / Math.sqrt(grams.length))
  }
  return unitVector(sum)
}
