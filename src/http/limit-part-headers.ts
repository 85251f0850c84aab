import { WbError } from '../contract/errors.ts'

const lineEnd = Buffer.from('\r\n')
const headerEnd = Buffer.from('\r\n\r\n')
const lastMark = Buffer.from('--')

/**
 * Passes the chunks of a form through unchanged, and refuses a part with a header that is too long. The
 * parser would silently truncate it.
 *
 * @throws invalid_multipart  when the header of a part is larger than `bytesMax`
 * @see RFC 2046, section 5.1.1
 */
export async function* limitPartHeaders(
  chunks: AsyncIterable<Uint8Array>,
  boundary: string,
  bytesMax: number,
): AsyncGenerator<Uint8Array> {
  const delimiter = Buffer.from(`\r\n--${boundary}`)
  let isHeader = false
  let isOver = false
  // The body may start with a delimiter that has no line break before it.
  let held: Buffer = lineEnd
  for await (const chunk of chunks) {
    if (!isOver) held = Buffer.concat([held, chunk])
    while (!isOver) {
      const end = held.indexOf(isHeader ? headerEnd : delimiter)
      const isLong = (end < 0 ? held.length : end) > bytesMax
      isOver = isHeader && held.subarray(0, lastMark.length).equals(lastMark)
      if (isHeader && isLong && !isOver)
        throw new WbError(
          'invalid_multipart',
          `a part of the form has a header of more than ${bytesMax} bytes`,
        )
      if (end < 0) break
      // If a part is empty, the line break that ends its headers also starts the next delimiter.
      held = held.subarray(end + (isHeader ? lineEnd.length : delimiter.length))
      isHeader = !isHeader
    }
    if (!isHeader) held = held.subarray(Math.max(0, held.length - delimiter.length + 1))
    yield chunk
  }
}
