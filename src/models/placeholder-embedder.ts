import { BoundedCache } from '../base/bounded-cache.ts'
import { fnv1a, mixBits } from '../base/fnv1a.ts'
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

/** Maximum number of terms whose features are cached. */
const cachedTermsMax = 1 << 17

/**
 * Positions and signs of the features of a term: first the term, then its n-grams. Each character code is twice the
 * position, plus 1 for a positive sign. A string takes less memory than an array.
 */
type TermFeatures = string

const featureCache = new BoundedCache<string, TermFeatures>(cachedTermsMax)

function encodeFeature(hash: number): string {
  let state = hash
  let feature = ''
  for (let step = 0; step < positionsPerFeature; step++) {
    state = mixBits(state + 0x9e3779b9)
    feature += String.fromCharCode((((state >>> 1) % lsaDimension) << 1) | (state & 1))
  }
  return feature
}

function gramsOf(term: string): string[] {
  const boundedTerm = `^${term}$`
  return gramLengths.flatMap(length =>
    Array.from({ length: Math.max(0, boundedTerm.length - length + 1) }, (_, at) =>
      boundedTerm.slice(at, at + length),
    ),
  )
}

function featuresOf(term: string): TermFeatures {
  const cached = featureCache.get(term)
  if (cached !== undefined) return cached
  const features = [fnv1a(term), ...gramsOf(term).map(gram => fnv1a(gram, gramBasis))]
  // Joined, because a string that was built by concatenation is slow to read.
  const encoded = features.map(encodeFeature).join('')
  featureCache.set(term, encoded)
  return encoded
}

/** Adds the features from `start` to `end`, exclusive. */
function addFeatures(
  sum: Float64Array,
  features: TermFeatures,
  { start, end, weight }: { start: number; end: number; weight: number },
): void {
  for (let at = start; at < end; at++) {
    const code = features.charCodeAt(at)
    // A factor instead of a condition, because the processor cannot predict the sign.
    sum[code >> 1]! += weight * (2 * (code & 1) - 1)
  }
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
    const features = featuresOf(term)
    const weight = frequencyWeight(count)
    addFeatures(sum, features, { start: 0, end: positionsPerFeature, weight })
    const grams = features.length / positionsPerFeature - 1
    const weightOfGram = (weight * gramWeight) / Math.sqrt(grams)
    addFeatures(sum, features, { start: positionsPerFeature, end: features.length, weight: weightOfGram })
  }
  return unitVector(sum)
}
