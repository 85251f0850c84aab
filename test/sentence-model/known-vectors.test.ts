import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { unitVector } from '../../src/base/unit-vector.ts'
import { encodeVectors, KnownVectors, withKnownVectors } from '../../src/sentence-model/known-vectors.ts'
import { SENTENCE_DIMENSION } from '../../src/sentence-model/sentence-encoder.ts'
import { fakeSentenceModel } from '../fakes/sentence-model.ts'
import { scratchDir } from '../harness/runtime.ts'

const vector = fc
  .array(fc.double({ min: -1, max: 1, noNaN: true }), {
    minLength: SENTENCE_DIMENSION,
    maxLength: SENTENCE_DIMENSION,
  })
  .filter(numbers => numbers.some(number => Math.abs(number) > 0.01))
  .map(unitVector)

function cosine(a: Float32Array, b: Float32Array): number {
  return a.reduce((sum, number, index) => sum + number * b[index]!, 0)
}

test('vectors are read as they were written, with the precision of a byte', () => {
  const path = join(scratchDir(), 'vectors.bin')
  fc.assert(
    fc.property(fc.dictionary(fc.string(), vector, { maxKeys: 5 }), vectors => {
      writeFileSync(path, encodeVectors(new Map(Object.entries(vectors))))
      const known = KnownVectors.read(path)
      for (const [text, written] of Object.entries(vectors))
        expect(cosine(known.get(text)!, written)).toBeGreaterThan(0.999)
      expect(known.get('another text, which is long enough')).toBeUndefined()
    }),
    { numRuns: 30 },
  )
})

test('a missing file has no vectors', () => {
  expect(KnownVectors.read(join(scratchDir(), 'missing.bin')).get('')).toBeUndefined()
})

test('a model computes only the passages that are not known, and every query', async () => {
  const path = join(scratchDir(), 'vectors.bin')
  const model = fakeSentenceModel()
  const [known] = await model.embed(['apple pie'], { priority: 'query' })
  writeFileSync(path, encodeVectors(new Map([['apple pie', known!]])))
  const wrapped = withKnownVectors(model, path)
  const vectors = await wrapped.embed(['pear', 'apple pie', 'plum'], { priority: 'background' })
  expect(model.passages).toEqual(['pear', 'plum'])
  expect(cosine(vectors[1]!, known!)).toBeGreaterThan(0.999)
  expect(vectors[2]).toEqual((await model.embed(['plum'], { priority: 'query' }))[0])
})
