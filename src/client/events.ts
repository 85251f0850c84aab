import type { ServerEvent } from '../contract/route.ts'
import { lines } from './lines.ts'
import { notOurs, Unreachable } from './unreachable.ts'

/** Maximum length of the data of one event, in characters. */
const dataCharsMax = 4_000_000
/** Maximum interval of a timer in milliseconds. The timer only keeps the process alive. */
const foreverMs = 2 ** 31 - 1

/**
 * Yields the events of a stream until it ends. An open stream keeps this process alive.
 *
 * @throws Unreachable  when the connection breaks
 * @see https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
 */
export async function* eventsOf(
  body: AsyncIterable<Uint8Array>,
  signal: AbortSignal | undefined,
): AsyncGenerator<ServerEvent> {
  const alive = setInterval(() => {}, foreverMs)
  try {
    yield* parsed(lines(body))
  } catch (error) {
    if (signal?.aborted || error instanceof Unreachable) throw error
    throw new Unreachable('the event stream was interrupted', 'Run the command again.', { cause: error })
  } finally {
    clearInterval(alive)
  }
}

async function* parsed(text: AsyncIterable<string>): AsyncGenerator<ServerEvent> {
  let id = ''
  let event = 'message'
  let data: string[] = []
  let size = 0
  for await (const line of text) {
    const [, name, value = ''] = /^([^:\r]*)(?::[ ]?([^\r]*))?\r?$/.exec(line) ?? []
    if (name === 'id') id = value
    else if (name === 'event') event = value
    else if (name === 'data') {
      size += value.length
      if (size > dataCharsMax) throw notOurs(`an event has more than ${dataCharsMax} characters`)
      data.push(value)
    } else if (line === '' || line === '\r') {
      if (data.length > 0) yield { id, event, data: objectIn(data.join('\n')) }
      event = 'message'
      data = []
      size = 0
    }
  }
}

function objectIn(text: string): object {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null) return value
  } catch {}
  throw notOurs('the runtime sent an event without a JSON object')
}
