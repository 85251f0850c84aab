import type { Source } from './found.ts'

/** One request holds at most this much, so that little is lost when a connection breaks. */
export const batchBytesMax = 8_000_000
export const batchDocumentsMax = 256

/** Sources in groups that each make a request; a source over the bound goes alone. */
export async function* batched(sources: AsyncIterable<Source>): AsyncGenerator<Source[]> {
  let batch: Source[] = []
  let bytes = 0
  for await (const source of sources) {
    const size = Buffer.byteLength(source.body.text)
    if (batch.length === batchDocumentsMax || (batch.length > 0 && bytes + size > batchBytesMax)) {
      yield batch
      batch = []
      bytes = 0
    }
    batch.push(source)
    bytes += size
  }
  if (batch.length > 0) yield batch
}
