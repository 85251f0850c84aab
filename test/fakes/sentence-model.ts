import { unitVector } from '../../src/base/unit-vector.ts'
import { SENTENCE_DIMENSION } from '../../src/sentence-model/sentence-encoder.ts'
import type { SentenceModel } from '../../src/sentence-model/sentence-model.ts'

/** A model without weights, whose calls are recorded. */
export interface FakeSentenceModel extends Pick<SentenceModel, 'embed' | 'close'> {
  /** Texts that were embedded in the background, in order. */
  readonly passages: string[]
  /** If set, calls fail with it. */
  failure: Error | undefined
}

/**
 * Returns a model that knows synonyms: two texts are similar if they have words with the same meaning.
 *
 * @param meanings  lists of words with the same meaning; every other word means itself
 */
export function fakeSentenceModel(...meanings: readonly (readonly string[])[]): FakeSentenceModel {
  const model: FakeSentenceModel = {
    passages: [],
    failure: undefined,
    async embed(texts, { priority }) {
      if (model.failure) throw model.failure
      if (priority === 'background') model.passages.push(...texts)
      return texts.map(text => vectorOf(text, meanings))
    },
    async close() {},
  }
  return model
}

function vectorOf(text: string, meanings: readonly (readonly string[])[]): Float32Array {
  const sums = new Float64Array(SENTENCE_DIMENSION)
  for (const word of text.toLowerCase().match(/\p{L}+/gu) ?? [])
    sums[dimensionOf(meanings.find(words => words.includes(word))?.[0] ?? word)]! += 1
  return unitVector(sums)
}

function dimensionOf(word: string): number {
  let hash = 7
  for (const character of word) hash = (hash * 31 + character.codePointAt(0)!) % 1_000_003
  return hash % SENTENCE_DIMENSION
}
