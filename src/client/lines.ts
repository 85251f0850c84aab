import { notOurs } from './unreachable.ts'

/** A line tells of one document. */
const lineCharsMax = 64_000_000

/**
 * The lines of a stream of UTF-8, without their ends; empty ones too.
 *
 * @throws Unreachable  a line has no end
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
