import { createParser, type EventSourceMessage } from 'eventsource-parser'

/**
 * Yields those events of a stream that have data. Omits an event that is incomplete at the end of the stream.
 *
 * @param charsMax  maximum size of an event that arrives in several chunks
 * @throws RangeError  when an event is too long
 * @see https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
 */
export async function* serverSentEvents(
  stream: AsyncIterable<Uint8Array>,
  charsMax: number,
): AsyncGenerator<EventSourceMessage> {
  const decoder = new TextDecoder()
  const events: EventSourceMessage[] = []
  let isTooLong = false
  const parser = createParser({
    maxBufferSize: charsMax,
    onEvent: event => events.push(event),
    onError({ type }) {
      isTooLong ||= type === 'max-buffer-size-exceeded'
    },
  })
  for await (const chunk of stream) {
    parser.feed(decoder.decode(chunk, { stream: true }))
    yield* events.splice(0)
    if (isTooLong) throw new RangeError(`an event has more than ${charsMax} characters`)
  }
}
