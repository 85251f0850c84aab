import type { Source } from './found.ts'

/** Maximum size of a request, so that a lost connection repeats little work. */
export const batchBytesMax = 8_000_000
export const batchDocumentsMax = 256
/** Texts of this size are sent alone, so that the upload can show progress. */
export const largeBytes = 1_000_000

/** Groups sources into batches of one request each. A large source is a batch by itself. */
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

/** True if the upload of a text shows progress. */
export function isLarge(source: Source): boolean {
  return sizeOfText(source) >= largeBytes
}

function sizeOfText({ body }: Source): number {
  return Buffer.byteLength(body.text)
}
