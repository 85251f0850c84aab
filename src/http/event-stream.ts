import type { z } from 'zod'
import type { Clock } from '../base/clock.ts'
import type { Route, ServerEvent } from '../contract/route.ts'
import { type AppContext, callerKey, type Exchange, replyHeaders } from './exchange.ts'
import { replaceHeaders } from './headers.ts'
import { HttpReply } from './http-reply.ts'
import { openAiEvent } from './openai-dialect.ts'
import {
  OutgoingStream,
  type OutgoingStreamParts,
  type StreamController,
  streamHeaders,
} from './outgoing-stream.ts'

/**
 * Idle time before a ping in milliseconds, and the longest time until a stream ends after its caller lost
 * access.
 */
const pingMs = 15_000
/**
 * Number of events at the start of a stream that are written to the socket one by one. Node writes all data
 * of one turn of the event loop at its end, so the first token of an answer would wait until all tokens that
 * have arrived are encoded. Later events share writes, which cost more than their encoding.
 */
const promptEvents = 4
/** Comment that keeps an idle stream open. Some clients treat it as an event, so it is never sent first. */
const ping = Buffer.from(': ping\n\n')

export interface EventStreamParts {
  readonly events: AsyncIterable<ServerEvent>
  /** Schemas by event name. Data is encoded with its schema, so undeclared fields cannot leak. */
  readonly schemas: Readonly<Record<string, z.ZodType>>
  readonly dialect: Route['dialect']
  /** Rejects if the caller would now be refused. */
  readonly stillAllowed: () => Promise<unknown>
  /** Called when the stream is over. */
  readonly ended: () => void
}

/**
 * Returns a stream of events, which ends when the reader disconnects or loses access, or when the runtime
 * drains. Events are requested as they are read, so they do not accumulate for a slow reader.
 *
 * @throws rate_limited  when the caller has too many streams open
 * @see https://html.spec.whatwg.org/multipage/server-sent-events.html
 */
export function createEventStream(
  shared: AppContext,
  current: Exchange,
  stream: EventStreamParts,
): HttpReply {
  const releaseCount = countStream(shared, current, stream)
  const release = () => {
    releaseCount()
    stream.ended()
  }
  const parts = { shared, current, stillAllowed: stream.stillAllowed, release, endsOnDrain: true }
  const body = new ReadableStream(new EventBody(shared.clock, stream, parts), { highWaterMark: 0 })
  const headers = replaceHeaders(replyHeaders(shared, current, 'text/event-stream'), streamHeaders)
  return new HttpReply(200, headers, body)
}

/**
 * Counts a stream of a caller, and returns a function that releases it.
 *
 * @throws rate_limited  when the caller has too many streams open
 */
function countStream(shared: AppContext, current: Exchange, { events }: EventStreamParts): () => void {
  if (!current.incoming.isFromOutside) return () => {}
  try {
    return shared.openStreams.open(callerKey(shared, current))
  } catch (refused) {
    const { requestId } = current.trace
    const ended = events[Symbol.asyncIterator]().return?.()
    ended?.catch(error => shared.log.error({ requestId, error }, 'a refused stream broke'))
    throw refused
  }
}

/** Body of a response that sends events from an iterator. */
class EventBody extends OutgoingStream {
  readonly #clock: Clock
  readonly #format: Pick<EventStreamParts, 'schemas' | 'dialect'>
  readonly #source: AsyncIterator<ServerEvent>
  #cancelPing = () => {}
  #isPingDue = false
  /** Event that was requested from the source and not yet sent. */
  #next: Promise<IteratorResult<ServerEvent>> | undefined
  #hasArrived = false
  #wake = () => {}
  #promptLeft = promptEvents

  constructor(clock: Clock, { events, schemas, dialect }: EventStreamParts, parts: OutgoingStreamParts) {
    super(parts)
    this.#clock = clock
    this.#format = { schemas, dialect }
    this.#source = events[Symbol.asyncIterator]()
    this.onEnd(() => this.#cancelPing())
    this.onEnd(() => this.#wake())
  }

  protected override begin(): void {
    this.#awaitSilence()
  }

  protected override async sendNext(controller: StreamController): Promise<void> {
    this.#next ??= this.#requestNext()
    if (!this.#hasArrived && !this.#isPingDue) await this.#waitForEvent()
    await this.access.confirm(this.#isPingDue)
    if (this.isOver) return
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
    else if (!this.isOver) {
      this.#send(controller, encodeEvent(value, this.#format))
      if (this.#promptLeft-- > 0) await new Promise(process.nextTick)
    }
  }

  #send(controller: StreamController, bytes: Uint8Array): void {
    controller.enqueue(bytes)
    this.#awaitSilence()
  }

  #awaitSilence(): void {
    this.#cancelPing()
    this.#isPingDue = false
    this.#cancelPing = this.#clock.after(pingMs, () => {
      this.#isPingDue = true
      this.#wake()
    })
  }
}

/** @throws Error  when the contract does not declare the event, or its ID contains a line break: a defect */
function encodeEvent(
  { id, event, data }: ServerEvent,
  { schemas, dialect }: Pick<EventStreamParts, 'schemas' | 'dialect'>,
): Uint8Array {
  const schema = schemas[event]
  if (!schema) throw new Error(`an event named ${JSON.stringify(event)} is not declared`)
  if (/[\r\n\0]/.test(id)) throw new Error('an event has a line end in its id')
  if (dialect === 'openai') return Buffer.from(openAiEvent(event, schema.parse(data)))
  const place = id === '' ? '' : `id: ${id}\n`
  return Buffer.from(`event: ${event}\ndata: ${JSON.stringify(schema.parse(data))}\n${place}\n`)
}
