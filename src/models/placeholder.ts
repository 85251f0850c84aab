import { fnv1a } from '../base/fnv.ts'
import { unitVector } from '../base/unit-vector.ts'
import { countTerms, frequencyWeight, type Passage } from './lsa/weigh.ts'
import { lsaDimension } from './lsa.ts'

/** Each feature moves so many numbers of the vector, so that two features rarely coincide. */
const placesPerFeature = 4
/** All character grams of a term together weigh as much as this share of the term itself, squared lengths compared. */
const gramWeight = 0.5
const gramLengths = [3, 4]
/** Apart from terms, so that a gram that is a term too is a feature of its own. */
const gramBasis = 0x050c5d1f

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
    sum[(state >>> 1) % lsaDimension]! += state & 1 ? weight : -weight
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
 * signs into as many numbers as the fitted model has that takes its place. Length 1, or all zero for a text without
 * terms; the same text gives the same vector in every process. It finds shared words and spellings, not meaning, and on
 * Cranfield it drags a hybrid ranking below the lexical one unless lexical weighs .8 or more.
 *
 * @see Weinberger et al., "Feature hashing for large scale multitask learning", ICML 2009
 */
export function placeholderEmbed(passage: Passage | string): Float32Array {
  const sum = new Float64Array(lsaDimension)
  for (const [term, count] of countTerms(
    typeof passage === 'string' ? { title: null, text: passage } : passage,
  )) {
    const weight = frequencyWeight(count)
    addFeature(sum, fnv1a(term), weight)
    const grams = gramsOf(term)
    for (const gram of grams)
      addFeature(sum, fnv1a(gram, gramBasis), (weight * gramWeight) / Math.sqrt(grams.length))
  }
  return unitVector(sum)
}
