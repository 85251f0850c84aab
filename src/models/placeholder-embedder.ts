import { fnv1a } from '../base/fnv1a.ts'
import { unitVector } from '../base/unit-vector.ts'
import { countTerms, type EmbeddedPassage, frequencyWeight } from './lsa/weigh-terms.ts'
import { lsaDimension } from './lsa.ts'

/** Number of vector positions that each feature changes. Two features rarely have all their positions in common. */
const positionsPerFeature = 4
/** Combined weight of a term's n-grams, relative to the weight of the term. */
const gramWeight = 0.5
const gramLengths = [3, 4]
/** Start value for hashing n-grams. It makes their hashes differ from those of terms with the same characters. */
const gramBasis = 0x050c5d1f

/** Mixes the bits of a hash (the finalizer of MurmurHash3). */
function mix(state: number): number {
  let mixed = Math.imul(state ^ (state >>> 16), 0x85ebca6b)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
  return mixed ^ (mixed >>> 16)
}

function addFeature(sum: Float64Array, feature: number, weight: number): void {
  let state = feature
  for (let step = 0; step < positionsPerFeature; step++) {
    state = mix(state + 0x9e3779b9)
    sum[(state >>> 1) % lsaDimension]! += state & 1 ? weight : -weight
  }
}

function gramsOf(term: string): string[] {
  const boundedTerm = `^${term}$`
  return gramLengths.flatMap(length =>
    Array.from({ length: Math.max(0, boundedTerm.length - length + 1) }, (_, at) =>
      boundedTerm.slice(at, at + length),
    ),
  )
}

/**
 * Embeds a passage or a query without a model, for use until a model is fitted. Hashes the terms and their character
 * 3-grams and 4-grams, with signs, into a vector of the same dimension as the vectors of the fitted model. The vector
 * has length 1, or is all zeros for a text without terms. Equal texts have equal vectors in all processes. The vector
 * represents words and spelling, not meaning. On the Cranfield collection, hybrid search with these vectors ranks worse
 * than lexical search, unless the lexical weight is at least 0.8.
 *
 * @see Weinberger et al., "Feature hashing for large scale multitask learning", ICML 2009
 */
export function placeholderEmbed(passage: EmbeddedPassage | string): Float32Array {
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
