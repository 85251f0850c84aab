import type { z } from 'zod'
import type { Clock } from '../base/clock.ts'
import type { Route, ServerEvent } from '../contract/route.ts'
import { type AppContext, callerKey, type Exchange, replyHeaders } from './exchange.ts'
import { replaceHeaders } from './headers.ts'
import { HttpReply } from './http-reply.ts'
import { openAiEvent } from './openai-dialect.ts'
import {
  OutgoingStream,
  type OutgoingStreamOptions,
  type StreamController,
  streamHeaders,
} from './outgoing-stream.ts'

/**
 * Idle time before a ping, in milliseconds. Each ping also checks access, so this is the longest time for which a
 * stream stays open after its caller has lost access.
 */
const pingMs = 15_000
/**
 * Number of events at the start of a stream that are written to the socket one by one. Otherwise, Node would write all
 * data of an event loop tick at its end, so the first token of an answer would wait until all tokens that have arrived
 * are encoded. Later events share a write, because a write costs more than encoding an event.
 */
const unbufferedEvents = 4
/** Comment that keeps an idle stream open. Some clients treat it as an event, so it is never sent first. */
const ping = Buffer.from(': ping\n\n')

export interface EventStreamOptions {
  readonly events: AsyncIterable<ServerEvent>
  /** Schemas by event name. Data is encoded with its schema, so undeclared fields cannot leak. */
  readonly schemas: Readonly<Record<string, z.ZodType>>
  readonly dialect: Route['dialect']
  /** Rejects if the caller no longer has access. */
  readonly confirmAccess: () => Promise<unknown>
  /** Called once when the stream has ended. */
  readonly onEnd: () => void
}

/**
 * Returns a response that streams events. It ends when the client disconnects or loses access, or when the
 * runtime shuts down. Each event is requested when the client reads, so a slow client does not accumulate events
 * in memory.
 *
 * @throws rate_limited  when the caller has too many streams open
 * @see https://html.spec.whatwg.org/multipage/server-sent-events.html
 */
export function createEventStream(
  context: AppContext,
  exchange: Exchange,
  stream: EventStreamOptions,
): HttpReply {
  const releaseCount = countStream(context, exchange, stream)
  const release = () => {
    releaseCount()
    stream.onEnd()
  }
  const streamOptions = { context, exchange, confirmAccess: stream.confirmAccess, release, endsOnDrain: true }
  const body = new ReadableStream(new EventBody(context.clock, stream, streamOptions), { highWaterMark: 0 })
  const headers = replaceHeaders(replyHeaders(context, exchange, 'text/event-stream'), streamHeaders)
  return new HttpReply(200, headers, body)
}

/**
 * Counts a new stream of the caller, and returns a function to call when the stream ends.
 *
 * @throws rate_limited  when the caller has too many streams open
 */
function countStream(context: AppContext, exchange: Exchange, { events }: EventStreamOptions): () => void {
  if (!exchange.incoming.isFromOutside) return () => {}
  try {
    return context.openStreams.open(callerKey(context, exchange))
  } catch (error) {
    const { requestId } = exchange.trace
    const closing = events[Symbol.asyncIterator]().return?.()
    closing?.catch(error => context.log.error({ requestId, error }, 'closing a rejected stream failed'))
    throw error
  }
}

/** Response body that sends the events of an iterator. */
class EventBody extends OutgoingStream {
  readonly #clock: Clock
  readonly #format: Pick<EventStreamOptions, 'schemas' | 'dialect'>
  readonly #source: AsyncIterator<ServerEvent>
  #cancelPing = () => {}
  #isPingDue = false
  /** Event that was requested from the source but not sent yet. */
  #next: Promise<IteratorResult<ServerEvent>> | undefined
  #hasArrived = false
  #wake = () => {}
  #unbufferedLeft = unbufferedEvents

  constructor(
    clock: Clock,
    { events, schemas, dialect }: EventStreamOptions,
    streamOptions: OutgoingStreamOptions,
  ) {
    super(streamOptions)
    this.#clock = clock
    this.#format = { schemas, dialect }
    this.#source = events[Symbol.asyncIterator]()
    this.onEnd(() => this.#cancelPing())
    this.onEnd(() => this.#wake())
  }

  protected override startTimers(): void {
    this.#schedulePing()
  }

  protected override async sendNext(controller: StreamController): Promise<void> {
    this.#next ??= this.#requestNext()
    if (!this.#hasArrived && !this.#isPingDue) await this.#waitForEvent()
    await this.access.confirm(this.#isPingDue)
    if (this.hasEnded) return
    if (this.#isPingDue && !this.#hasArrived) this.#send(controller, ping)
    else await this.#sendEvent(controller, this.#next)
  }

  protected override releaseSource(): Promise<unknown> {
    return this.#source.return?.() ?? Promise.resolve()
  }

  #requestNext(): Promise<IteratorResult<ServerEvent>> {
    const next = this.#source.next()
    const arrive = () => {
      this.#hasArrived = true
      this.#wake()
    }
    next.then(arrive, arrive)
    return next
  }

  #waitForEvent(): Promise<void> {
    return new Promise(resolve => {
      this.#wake = resolve
    })
  }

  async #sendEvent(controller: StreamController, next: Promise<IteratorResult<ServerEvent>>): Promise<void> {
    this.#next = undefined
    this.#hasArrived = false
    const { done, value } = await next
    if (done) this.close(controller)
    else if (!this.hasEnded) {
      this.#send(controller, encodeEvent(value, this.#format))
      if (this.#unbufferedLeft-- > 0) await new Promise(process.nextTick)
    }
  }

  #send(controller: StreamController, bytes: Uint8Array): void {
    controller.enqueue(bytes)
    this.#schedulePing()
  }

  #schedulePing(): void {
    this.#cancelPing()
    this.#isPingDue = false
    this.#cancelPing = this.#clock.after(pingMs, () => {
      this.#isPingDue = true
      this.#wake()
    })
  }
}

/** @throws Error  when the route does not declare the event, or its ID contains a line break; both are bugs */
function encodeEvent(
  { id, event, data }: ServerEvent,
  { schemas, dialect }: Pick<EventStreamOptions, 'schemas' | 'dialect'>,
): Uint8Array {
  const schema = schemas[event]
  if (!schema) throw new Error(`an event named ${JSON.stringify(event)} is not declared`)
  if (/[\r\n\0]/.test(id)) throw new Error('an event ID contains a line break')
  if (dialect === 'openai') return Buffer.from(openAiEvent(event, schema.parse(data)))
  const idLine = id === '' ? '' : `id: ${id}\n`
  return Buffer.from(`event: ${event}\ndata: ${JSON.stringify(schema.parse(data))}\n${idLine}\n`)
}
