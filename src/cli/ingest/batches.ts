import type { IngestSource } from './ingest-item.ts'

/** Maximum size of a batch in bytes. It is small so that little work is repeated after a lost connection. */
export const batchBytesMax = 8_000_000
export const batchDocumentsMax = 256
/** Size in bytes from which a text is sent in a separate request, so that the progress of its upload can be shown. */
export const largeBytes = 1_000_000

/** Groups sources into batches. Each batch is one request. A large source is the only source of its batch. */
export async function* groupIntoBatches(
  sources: AsyncIterable<IngestSource>,
): AsyncGenerator<IngestSource[]> {
  let batch: IngestSource[] = []
  let bytes = 0
  const takeBatch = () => {
    const full = batch
    batch = []
    bytes = 0
    return full
  }
  for await (const source of sources) {
    const size = sizeOf(source)
    const isFull = batch.length === batchDocumentsMax || bytes + size > batchBytesMax
    if (batch.length > 0 && (isFull || size >= largeBytes)) yield takeBatch()
    batch.push(source)
    bytes += size
    if (size >= largeBytes) yield takeBatch()
  }
  if (batch.length > 0) yield takeBatch()
}

/** Returns true if the text is so large that the progress of its upload is shown. */
export function isLarge(source: IngestSource): boolean {
  return sizeOf(source) >= largeBytes
}

function sizeOf(source: IngestSource): number {
  return 'file' in source ? source.file.sizeBytes : Buffer.byteLength(source.body.text)
}
