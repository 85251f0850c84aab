import { splitLines } from '../base/split-lines.ts'
import { unexpectedResponse } from './unreachable.ts'

/** Maximum length of a line. A line contains at most one document. */
const lineBytesMax = 128_000_000

/**
 * Yields the lines of a UTF-8 stream without line feeds, including empty lines.
 *
 * @throws Unreachable  when a line is too long
 */
export async function* readLines(body: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  for await (const line of splitLines(body, { bytesMax: lineBytesMax })) {
    if (!line) throw unexpectedResponse(`a line of the response has more than ${lineBytesMax} bytes`)
    yield decoder.decode(line)
  }
}
