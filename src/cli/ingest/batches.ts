import type { Source } from './found.ts'

/** One request holds at most this much, so that little is lost when a connection breaks. */
export const batchBytesMax = 8_000_000
export const batchDocumentsMax = 256
/** A text of this size takes a while on many a connection; it goes alone, so that it can be told how far it is. */
export const largeBytes = 1_000_000

/** Sources in groups that each make a request; a large source goes alone. */
export async function* batched(sources: AsyncIterable<Source>): AsyncGenerator<Source[]> {
  let batch: Source[] = []
  let bytes = 0
  const taken = () => {
    const full = batch
    batch = []
    bytes = 0
    return full
  }
  for await (const source of sources) {
    const size = sizeOfText(source)
    const isFull = batch.length === batchDocumentsMax || bytes + size > batchBytesMax
    if (batch.length > 0 && (isFull || size >= largeBytes)) yield taken()
    batch.push(source)
    bytes += size
    if (size >= largeBytes) yield taken()
  }
  if (batch.length > 0) yield taken()
}

/** Whether the way of a text is worth telling of. */
export function isLarge(source: Source): boolean {
  return sizeOfText(source) >= largeBytes
}

function sizeOfText({ body }: Source): number {
  return Buffer.byteLength(body.text)
}
