import type { ServerEvent } from '../contract/route.ts'
import { type Exchange, headersOf, type Shared } from './exchange.ts'
import { Reply } from './reply.ts'

/** Events as they happen, until the reader goes away. @see https://html.spec.whatwg.org/multipage/server-sent-events.html */
export function eventStream(shared: Shared, current: Exchange, events: AsyncIterable<ServerEvent>): Reply {
  const source = events[Symbol.asyncIterator]()
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await source.next()
        if (done) controller.close()
        else controller.enqueue(encode(value))
      },
      async cancel() {
        await source.return?.()
      },
    },
    { highWaterMark: 0 },
  )
  return new Reply(200, headersOf(shared, current, 'text/event-stream'), body)
}

function encode({ id, event, data }: ServerEvent): Uint8Array {
  return Buffer.from(`id: ${id}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`)
}
