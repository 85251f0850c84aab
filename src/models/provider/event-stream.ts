import { serverSentEvents } from '../../base/server-sent-events.ts'

/** Maximum number of characters in one event. Typical events have a few hundred. */
const eventCharsMax = 4_000_000

/**
 * Yields the data of server-sent events, in order. The empty line after the last event can be missing, because some
 * providers omit it.
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
