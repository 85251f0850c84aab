import { parseJson } from '../base/parse-json.ts'
import { serverSentEvents } from '../base/server-sent-events.ts'
import type { ServerEvent } from '../contract/route.ts'
import { Unreachable, unexpectedResponse } from './unreachable.ts'

/** Maximum length of one event, in characters. */
const eventCharsMax = 4_000_000
/** Longest interval that a timer supports. The timer does nothing except keep the process alive. */
const timerMaxMs = 2 ** 31 - 1

/**
 * Yields the events of a stream until the stream ends. An open stream keeps this process alive.
 *
 * @throws Unreachable  when the connection breaks
 * @see https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
 */
export async function* readEvents(
  body: AsyncIterable<Uint8Array>,
  signal: AbortSignal | undefined,
): AsyncGenerator<ServerEvent> {
  const keepAlive = setInterval(() => {}, timerMaxMs)
  try {
    yield* parseEvents(body)
  } catch (error) {
    if (signal?.aborted || error instanceof Unreachable) throw error
    if (error instanceof RangeError) throw unexpectedResponse(error.message)
    throw new Unreachable('the event stream was interrupted', 'Run the command again.', { cause: error })
  } finally {
    clearInterval(keepAlive)
  }
}

async function* parseEvents(body: AsyncIterable<Uint8Array>): AsyncGenerator<ServerEvent> {
  let lastId = ''
  for await (const { id, event = 'message', data } of serverSentEvents(body, eventCharsMax)) {
    lastId = id ?? lastId
    yield { id: lastId, event, data: parseData(data) }
  }
}

function parseData(text: string): object {
  const value = parseJson(text)
  if (typeof value === 'object' && value !== null) return value
  throw unexpectedResponse('the runtime sent an event without a JSON object')
}
