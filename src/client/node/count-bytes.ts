import { Readable } from 'node:stream'

/** A body in chunks. */
type ByteChunks = AsyncIterable<Uint8Array> | Iterable<Uint8Array>

/**
 * Wraps a body, and reports how much of it was sent.
 *
 * @param onSent  called after each chunk with the number of bytes sent so far
 */
export function countBytes(body: ByteChunks, onSent: (bytes: number) => void): Readable {
  return Readable.from(countChunks(body, onSent), { objectMode: false })
}

async function* countChunks(body: ByteChunks, onSent: (bytes: number) => void): AsyncGenerator<Uint8Array> {
  let bytes = 0
  for await (const chunk of body) {
    yield chunk
    bytes += chunk.byteLength
    onSent(bytes)
  }
}
