/** A body has more bytes than it may. */
export class TooLong extends Error {
  override readonly name = 'TooLong'

  constructor(bytesMax: number) {
    super(`an answer of more than ${bytesMax} bytes`)
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
  let length = 0
  for await (const part of body ?? []) {
    length += part.length
    if (length > bytesMax) throw new TooLong(bytesMax)
    parts.push(part)
  }
  return Buffer.concat(parts, length)
}
