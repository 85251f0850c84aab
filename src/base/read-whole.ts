/** A body has more bytes than it may. */
export class TooLong extends Error {
  override readonly name = 'TooLong'

  constructor(bytesMax: number) {
    super(`an answer of more than ${bytesMax} bytes`)
  }
}

/**
 * The parts of an answer's body.
 *
 * @throws TooLong  over `bytesMax`; the rest of the body is not read
 */
export async function* bounded(
  body: AsyncIterable<Uint8Array> | null,
  bytesMax: number,
): AsyncGenerator<Uint8Array, void, undefined> {
  let length = 0
  for await (const part of body ?? []) {
    length += part.length
    if (length > bytesMax) throw new TooLong(bytesMax)
    yield part
  }
}

/**
 * All bytes of an answer's body.
 *
 * @throws TooLong  over `bytesMax`; the rest of the body is not read
 */
export async function readWhole(
  body: AsyncIterable<Uint8Array> | null,
  bytesMax: number,
): Promise<Buffer<ArrayBuffer>> {
  const parts: Uint8Array[] = []
  for await (const part of bounded(body, bytesMax)) parts.push(part)
  return Buffer.concat(parts)
}

/** Let go of a body that nobody reads: it would hold its connection. */
export async function leave(body: AsyncIterable<Uint8Array> | null): Promise<void> {
  await body?.[Symbol.asyncIterator]().return?.()
}
