/** Characters of one event; a provider sends a few hundred. */
const eventCharsMax = 8_000_000

/**
 * What the events of a stream of server-sent events hold, in order. An event that the body ends in counts: some
 * providers leave the last empty line out. A line costs its length, in however many pieces it comes.
 *
 * @throws RangeError  an event has no end
 * @see https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
 */
export async function* eventData(body: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  let data: string[] = []
  let chars = 0
  for await (const line of lines(body)) {
    if (line === '') {
      if (data.length > 0) yield data.join('\n')
      data = []
      chars = 0
    } else if (line.startsWith('data:')) {
      data.push(line.slice(line[5] === ' ' ? 6 : 5))
      chars += line.length
      if (chars > eventCharsMax) throw tooLong()
    }
  }
  if (data.length > 0) yield data.join('\n')
}

/** The lines of UTF-8, without their ends, which are `\n`, `\r\n` or `\r`. */
async function* lines(body: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  let afterReturn = false
  for await (const part of body) {
    const text = decoder.decode(part, { stream: true })
    if (text === '') continue
    const [first = '', ...more] = (afterReturn && text[0] === '\n' ? text.slice(1) : text).split(/\r\n|\n|\r/)
    afterReturn = text.endsWith('\r')
    rest += first
    for (const next of more) {
      yield rest
      rest = next
    }
    if (rest.length > eventCharsMax) throw tooLong()
  }
  rest += decoder.decode()
  if (rest !== '') yield rest
}

function tooLong(): RangeError {
  return new RangeError(`an event of more than ${eventCharsMax} characters`)
}
