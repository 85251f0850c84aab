import { expect, test } from 'vitest'
import { SentenceEncoder } from '../../src/sentence-model/sentence-encoder.ts'
import { cosine, ReferenceEncoder } from './reference-encoder.ts'

const encoder = new SentenceEncoder()

test('vectors of texts and of tokens are close to those of the original in f32', () => {
  const reference = new ReferenceEncoder()
  for (const { vector, tokens, tokenVectors } of encoder.encode([
    'throw away an API token',
    'Revoke a key.',
    '',
  ])) {
    const rows = reference.encode(tokens)
    expect(cosine(vector, reference.embed(tokens))).toBeGreaterThan(0.99)
    for (let at = 0; at < rows.length; at += 384)
      expect(cosine(tokenVectors.subarray(at, at + 384), rows.subarray(at, at + 384))).toBeGreaterThan(0.98)
  }
})

test('all vectors have length 1', () => {
  const { vector, tokens, tokenVectors } = encoder.encode(['Vectors of length one'])[0]!
  expect(vector).toHaveLength(384)
  expect(Math.hypot(...vector)).toBeCloseTo(1, 5)
  expect(tokenVectors.length).toBe(tokens.length * 384)
  expect(Math.hypot(...tokenVectors.subarray(384, 768))).toBeCloseTo(1, 5)
})

test('texts are as similar as the authors of the model have published', () => {
  const [first, ...others] = encoder.embed([
    'That is a happy person',
    'That is a happy dog',
    'That is a very happy person',
    'Today is a sunny day',
  ]) as [Float32Array, ...Float32Array[]]
  const published = [0.695, 0.943, 0.257]
  for (const [at, other] of others.entries())
    expect(Math.abs(cosine(first, other) - published[at]!)).toBeLessThan(0.01)
})

test('a result does not depend on other texts, or on earlier calls', () => {
  const texts = [
    'a',
    'How do I revoke a key?',
    'many words '.repeat(80),
    '',
    'ünïcode 中国',
    'b c',
    'x'.repeat(90),
  ]
  const together = encoder.encode(texts)
  expect(texts.map(text => encoder.encode([text])[0])).toEqual(together)
  expect(encoder.encode([...texts].reverse()).reverse()).toEqual(together)
  expect(new SentenceEncoder().embed(texts)).toEqual(together.map(({ vector }) => vector))
})

test('text beyond 256 tokens is ignored', () => {
  const [long, cut] = encoder.encode(['word '.repeat(2_000), 'word '.repeat(254)])
  expect(long).toEqual(cut)
  expect(long!.tokens).toHaveLength(256)
})
