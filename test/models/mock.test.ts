import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createMockEmbedder } from '../../src/models/mock-embedder.ts'

const forever = new AbortController().signal
const dot = (left: Float32Array, right: Float32Array) =>
  left.reduce((sum, value, at) => sum + value * right[at]!, 0)

test('a text always has the same unit vector, in any dimension', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.string({ unit: 'binary' }),
      fc.integer({ min: 1, max: 2_048 }),
      async (text, dimension) => {
        const [first] = await createMockEmbedder(dimension).embed([text], forever)
        const [, again] = await createMockEmbedder(dimension).embed(['other', text], forever)
        expect(first).toEqual(again)
        expect(first).toHaveLength(dimension)
        expect(dot(first!, first!)).toBeCloseTo(1, 4)
      },
    ),
  )
})

test('texts with common words have a higher similarity', async () => {
  const [question, near, far] = await createMockEmbedder(1_024).embed(
    ['How do I get a refund?', 'A refund: how to get one', 'Boundary layers in supersonic flow'],
    forever,
  )
  expect(dot(question!, near!)).toBeGreaterThan(0.3)
  expect(dot(question!, near!)).toBeGreaterThan(dot(question!, far!) + 0.2)
})

test('vectors do not change between versions, so stored ones remain valid', async () => {
  const [vector] = await createMockEmbedder(4).embed(['refund window'], forever)
  expect([...vector!].map(value => Number(value.toFixed(4)))).toMatchInlineSnapshot(`
    [
      0,
      -0.4472,
      0,
      -0.8944,
    ]
  `)
})

test('throws if its caller has disconnected', async () => {
  await expect(createMockEmbedder(4).embed(['a'], AbortSignal.abort(new Error('gone')))).rejects.toThrow(
    'gone',
  )
})
