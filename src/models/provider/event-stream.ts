import { serverSentEvents } from '../../base/server-sent-events.ts'

/** Maximum characters of one event. Providers send a few hundred. */
const eventCharsMax = 8_000_000

/**
 * Yields the data of server-sent events, in order. A last event without its empty line counts, because some
 * providers omit that line.
 *
 * @throws RangeError  an event is too long
 */
export async function* eventData(body: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  for await (const { data } of serverSentEvents(withEmptyLine(body), eventCharsMax)) yield data
}

async function* withEmptyLine(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield* body
  yield new TextEncoder().encode('\n\n')
}
