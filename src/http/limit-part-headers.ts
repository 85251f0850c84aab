import { WbError } from '../contract/errors.ts'

const lineEnd = Buffer.from('\r\n')
const headerEnd = Buffer.from('\r\n\r\n')
const finalSuffix = Buffer.from('--')

/**
 * Passes the chunks of a form through unchanged, and rejects a part whose headers are too long, because the form
 * parser would truncate them silently.
 *
 * @throws invalid_multipart  when the headers of a part are larger than `bytesMax`
 * @see RFC 2046, section 5.1.1
 */
export async function* limitPartHeaders(
  chunks: AsyncIterable<Uint8Array>,
  boundary: string,
  bytesMax: number,
): AsyncGenerator<Uint8Array> {
  const delimiter = Buffer.from(`\r\n--${boundary}`)
  let isHeader = false
  let isLastBoundary = false
  // The first delimiter may have no line break before it, so the buffer starts with one.
  let buffered: Buffer = lineEnd
  for await (const chunk of chunks) {
    if (!isLastBoundary) buffered = Buffer.concat([buffered, chunk])
    while (!isLastBoundary) {
      const end = buffered.indexOf(isHeader ? headerEnd : delimiter)
      const isTooLong = (end < 0 ? buffered.length : end) > bytesMax
      isLastBoundary = isHeader && buffered.subarray(0, finalSuffix.length).equals(finalSuffix)
      if (isHeader && isTooLong && !isLastBoundary)
        throw new WbError(
          'invalid_multipart',
          `a part of the form has more than ${bytesMax} bytes of headers`,
        )
      if (end < 0) break
      // In an empty part, the line break that ends the headers also starts the next delimiter, so it is kept.
      buffered = buffered.subarray(end + (isHeader ? lineEnd.length : delimiter.length))
      isHeader = !isHeader
    }
    if (!isHeader) buffered = buffered.subarray(Math.max(0, buffered.length - delimiter.length + 1))
    yield chunk
  }
}
