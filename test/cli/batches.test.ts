import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  batchBytesMax,
  batchDocumentsMax,
  groupIntoBatches,
  largeBytes,
} from '../../src/cli/ingest/batches.ts'
import type { IngestSource, TextSource } from '../../src/cli/ingest/ingest-item.ts'

function source(text: string): IngestSource {
  return { path: 'x', body: { text, sourceFilename: 'x' } }
}

async function sizes(texts: string[]): Promise<number[][]> {
  async function* sources() {
    for (const text of texts) yield source(text)
  }
  const all: number[][] = []
  for await (const batch of groupIntoBatches(sources()))
    all.push(batch.map(one => Buffer.byteLength((one as TextSource).body.text)))
  return all
}

test('starts a new batch after the maximum number of documents', async () => {
  const counts = async (number: number) => (await sizes(Array(number).fill('x'))).map(batch => batch.length)
  expect(await counts(batchDocumentsMax)).toEqual([batchDocumentsMax])
  expect(await counts(batchDocumentsMax + 1)).toEqual([batchDocumentsMax, 1])
  expect(await counts(0)).toEqual([])
})

test('starts a new batch at the size limit, and sends a large text alone', async () => {
  const counts = async (texts: string[]) => (await sizes(texts)).map(batch => batch.length)
  const middling = Array<string>(16).fill('x'.repeat(batchBytesMax / 16))
  expect(await counts([...middling, 'x'])).toEqual([16, 1])
  expect(await counts(['a', 'b', 'x'.repeat(largeBytes), 'c', 'd'])).toEqual([2, 1, 2])
})

test('sends every text once, in order', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 1, max: batchBytesMax }), { maxLength: 6 }),
      async lengths => {
        const sent = await sizes(lengths.map(length => 'x'.repeat(length)))
        expect(sent.flat()).toEqual(lengths)
      },
    ),
    { numRuns: 20 },
  )
})
