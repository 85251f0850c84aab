import { Readable } from 'node:stream'

/** What a body that goes piece by piece is made of. */
type Parts = AsyncIterable<Uint8Array> | Iterable<Uint8Array>

/**
 * A body that tells how much of it has left.
 *
 * @param onSent  takes the bytes so far, after each piece
 */
export function counted(body: Parts, onSent: (bytes: number) => void): Readable {
  return Readable.from(counting(body, onSent), { objectMode: false })
}

async function* counting(body: Parts, onSent: (bytes: number) => void): AsyncGenerator<Uint8Array> {
  let bytes = 0
  for await (const part of body) {
    yield part
    bytes += part.byteLength
    onSent(bytes)
  }
}
