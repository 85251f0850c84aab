import { notOurs } from './unreachable.ts'

/** Maximum length of a line in characters. A line contains at most one document. */
const lineCharsMax = 64_000_000

/**
 * Yields the lines of a UTF-8 stream, without line ends; including empty ones.
 *
 * @throws Unreachable  when a line is too long
 */
export async function* lines(body: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const part of body) {
    const [first = '', ...more] = decoder.decode(part, { stream: true }).split('\n')
    rest += first
    for (const next of more) {
      yield rest
      rest = next
    }
    if (rest.length > lineCharsMax)
      throw notOurs(`a line of the answer has more than ${lineCharsMax} characters`)
  }
  rest += decoder.decode()
  if (rest !== '') yield rest
}
