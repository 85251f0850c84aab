import { Readable } from 'node:stream'

/** A body in chunks. */
type Parts = AsyncIterable<Uint8Array> | Iterable<Uint8Array>

/**
 * Returns a body that reports how much of it was sent.
 *
 * @param onSent  called after each chunk with the number of bytes sent so far
 */
export function countBytes(body: Parts, onSent: (bytes: number) => void): Readable {
  return Readable.from(countChunks(body, onSent), { objectMode: false })
}

async function* countChunks(body: Parts, onSent: (bytes: number) => void): AsyncGenerator<Uint8Array> {
  let bytes = 0
  for await (const part of body) {
    yield part
    bytes += part.byteLength
    onSent(bytes)
  }
}
