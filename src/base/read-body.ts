/** Error for a body with too many bytes. */
export class BodyTooLong extends Error {
  override readonly name = 'BodyTooLong'

  constructor(bytesMax: number) {
    super(`a response of more than ${bytesMax} bytes`)
  }
}

/**
 * Yields the parts of a response body.
 *
 * @throws BodyTooLong  more than `bytesMax` bytes; the rest of the body is not read
 */
export async function* limitBytes(
  body: AsyncIterable<Uint8Array> | null,
  bytesMax: number,
): AsyncGenerator<Uint8Array, void, undefined> {
  let length = 0
  for await (const part of body ?? []) {
    length += part.length
    if (length > bytesMax) throw new BodyTooLong(bytesMax)
    yield part
  }
}

/**
 * Returns all bytes of a response body.
 *
 * @throws BodyTooLong  more than `bytesMax` bytes; the rest of the body is not read
 */
export async function readBody(
  body: AsyncIterable<Uint8Array> | null,
  bytesMax: number,
): Promise<Buffer<ArrayBuffer>> {
  const parts: Uint8Array[] = []
  for await (const part of limitBytes(body, bytesMax)) parts.push(part)
  return Buffer.concat(parts)
}

/** Discards an unread body, which would otherwise keep its connection open. */
export async function discardBody(body: AsyncIterable<Uint8Array> | null): Promise<void> {
  await body?.[Symbol.asyncIterator]().return?.()
}
