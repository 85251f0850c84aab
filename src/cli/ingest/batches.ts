import type { Source } from './ingest-item.ts'

/** Maximum size of a request. A lost connection then repeats little work. */
export const batchBytesMax = 8_000_000
export const batchDocumentsMax = 256
/** Texts of this size are sent alone, so that the upload can show progress. */
export const largeBytes = 1_000_000

/** Groups sources into batches, each sent as one request. A large source forms its own batch. */
export async function* groupIntoBatches(sources: AsyncIterable<Source>): AsyncGenerator<Source[]> {
  let batch: Source[] = []
  let bytes = 0
  const takeBatch = () => {
    const full = batch
    batch = []
    bytes = 0
    return full
  }
  for await (const source of sources) {
    const size = textBytes(source)
    const isFull = batch.length === batchDocumentsMax || bytes + size > batchBytesMax
    if (batch.length > 0 && (isFull || size >= largeBytes)) yield takeBatch()
    batch.push(source)
    bytes += size
    if (size >= largeBytes) yield takeBatch()
  }
  if (batch.length > 0) yield takeBatch()
}

/** Returns true if the text is so large that its upload shows progress. */
export function isLarge(source: Source): boolean {
  return textBytes(source) >= largeBytes
}

function textBytes({ body }: Source): number {
  return Buffer.byteLength(body.text)
}
