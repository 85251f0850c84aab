import { WbError } from '../contract/errors.ts'

const lineEnd = Buffer.from('\r\n')
const headerEnd = Buffer.from('\r\n\r\n')
const lastMark = Buffer.from('--')

/**
 * The chunks of a form as they are, as long as no part has a header beyond a size; the parser would cut it off unsaid.
 *
 * @throws invalid_multipart
 * @see RFC 2046, section 5.1.1
 */
export async function* withShortHeaders(
  chunks: AsyncIterable<Uint8Array>,
  boundary: string,
  bytesMax: number,
): AsyncGenerator<Uint8Array> {
  const delimiter = Buffer.from(`\r\n--${boundary}`)
  let isHeader = false
  let isOver = false
  // The first delimiter may begin the body.
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
      // The line end before an empty content also begins the delimiter after it.
      held = held.subarray(end + (isHeader ? lineEnd.length : delimiter.length))
      isHeader = !isHeader
    }
    if (!isHeader) held = held.subarray(Math.max(0, held.length - delimiter.length + 1))
    yield chunk
  }
}
