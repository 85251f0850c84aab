/** Maximum characters of one event. Providers send a few hundred. */
const eventCharsMax = 8_000_000

/**
 * Yields the data of server-sent events, in order. A last event without its empty line counts, because some
 * providers omit that line. Cost is linear in the length of a line, even if it arrives in many parts.
 *
 * @throws RangeError  an event is too long
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
      if (chars > eventCharsMax) throw eventTooLong()
    }
  }
  if (data.length > 0) yield data.join('\n')
}

/** Yields the lines of UTF-8 text, without their ends (`\n`, `\r\n` or `\r`). */
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
    if (rest.length > eventCharsMax) throw eventTooLong()
  }
  rest += decoder.decode()
  if (rest !== '') yield rest
}

function eventTooLong(): RangeError {
  return new RangeError(`an event of more than ${eventCharsMax} characters`)
}
