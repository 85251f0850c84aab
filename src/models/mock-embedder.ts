import { fnv1a } from '../base/fnv1a.ts'
import { unitVector } from '../base/unit-vector.ts'
import { words } from '../base/words.ts'
import type { Embedder } from './embedder.ts'

const positionsPerWord = 8

/**
 * Creates an embedder without a model, for tests. Vectors have length 1. Equal texts always have equal vectors, and
 * texts with words in common have similar vectors: each word adds or subtracts 1 at a few positions that depend on the
 * hash of the word.
 */
export function createMockEmbedder(dimension: number): Embedder {
  return {
    dimension,
    async embed(texts, signal) {
      signal.throwIfAborted()
      return texts.map(text => vectorOf(text, dimension))
    },
  }
}

function vectorOf(text: string, dimension: number): Float32Array {
  const sums = new Float32Array(dimension)
  const textWords = words(text)
  for (const word of textWords.length > 0 ? textWords : [text]) addWord(sums, fnv1a(word))
  if (sums.every(sum => sum === 0)) sums[0] = 1
  return unitVector(sums)
}

function addWord(sums: Float32Array, seed: number): void {
  let state = seed || 1
  for (let step = 0; step < positionsPerWord; step++) {
    state = xorshift(state)
    sums[state % sums.length]! += state & 0x80000000 ? 1 : -1
  }
}

/**
 * Returns the next state of the random number generator xorshift32, unsigned.
 *
 * @see Marsaglia, "Xorshift RNGs", J. Stat. Software 8(14), 2003
 */
function xorshift(state: number): number {
  state ^= state << 13
  state ^= state >>> 17
  state ^= state << 5
  return state >>> 0
}
