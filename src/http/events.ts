import type { z } from 'zod'
import type { Clock } from '../base/clock.ts'
import type { Route, ServerEvent } from '../contract/route.ts'
import { callerOf, type Exchange, headersOf, type Shared } from './exchange.ts'
import { withHeaders } from './headers.ts'
import { openAiEvent } from './openai-dialect.ts'
import { Reply } from './reply.ts'
import { type Controller, Outgoing, type OutgoingParts, streamHeaders } from './stream.ts'

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

export interface EventStream {
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
export function eventStream(shared: Shared, current: Exchange, stream: EventStream): Reply {
  const release = countStream(shared, current, stream)
  const countOff = () => {
    release()
    stream.ended()
  }
  const parts = { shared, current, stillAllowed: stream.stillAllowed, countOff, endsOnDrain: true }
  const body = new ReadableStream(new EventBody(shared.clock, stream, parts), { highWaterMark: 0 })
  const headers = withHeaders(headersOf(shared, current, 'text/event-stream'), streamHeaders)
  return new Reply(200, headers, body)
}

/**
 * Counts a stream of a caller, and returns a function that releases it.
 *
 * @throws rate_limited  when the caller has too many streams open
 */
function countStream(shared: Shared, current: Exchange, { events }: EventStream): () => void {
  if (!current.incoming.isFromOutside) return () => {}
  try {
    return shared.openStreams.open(callerOf(shared, current))
  } catch (refused) {
    const { requestId } = current.trace
    const ended = events[Symbol.asyncIterator]().return?.()
    ended?.catch(error => shared.log.error({ requestId, error }, 'a refused stream broke'))
    throw refused
  }
}

/** Body of a response that sends events from an iterator. */
class EventBody extends Outgoing {
  readonly #clock: Clock
  readonly #format: Pick<EventStream, 'schemas' | 'dialect'>
  readonly #source: AsyncIterator<ServerEvent>
  #callOffPing = () => {}
  #isPingDue = false
  /** Event that was requested from the source and not yet sent. */
  #next: Promise<IteratorResult<ServerEvent>> | undefined
  #hasArrived = false
  #wake = () => {}
  #promptLeft = promptEvents

  constructor(clock: Clock, { events, schemas, dialect }: EventStream, parts: OutgoingParts) {
    super(parts)
    this.#clock = clock
    this.#format = { schemas, dialect }
    this.#source = events[Symbol.asyncIterator]()
    this.hold(() => this.#callOffPing())
    this.hold(() => this.#wake())
  }

  protected override begin(): void {
    this.#awaitSilence()
  }

  protected override async give(controller: Controller): Promise<void> {
    this.#next ??= this.#ask()
    if (!this.#hasArrived && !this.#isPingDue) await this.#news()
    await this.right.confirm(this.#isPingDue)
    if (this.isOver) return
    if (this.#isPingDue && !this.#hasArrived) this.#send(controller, ping)
    else await this.#tellNext(controller, this.#next)
  }

  protected override letGo(): Promise<unknown> {
    return this.#source.return?.() ?? Promise.resolve()
  }

  #ask(): Promise<IteratorResult<ServerEvent>> {
    const next = this.#source.next()
    const arrive = () => {
      this.#hasArrived = true
      this.#wake()
    }
    next.then(arrive, arrive)
    return next
  }

  #news(): Promise<void> {
    return new Promise(resolve => {
      this.#wake = resolve
    })
  }

  async #tellNext(controller: Controller, next: Promise<IteratorResult<ServerEvent>>): Promise<void> {
    this.#next = undefined
    this.#hasArrived = false
    const { done, value } = await next
    if (done) this.close(controller)
    else if (!this.isOver) {
      this.#send(controller, encode(value, this.#format))
      if (this.#promptLeft-- > 0) await new Promise(process.nextTick)
    }
  }

  #send(controller: Controller, bytes: Uint8Array): void {
    controller.enqueue(bytes)
    this.#awaitSilence()
  }

  #awaitSilence(): void {
    this.#callOffPing()
    this.#isPingDue = false
    this.#callOffPing = this.#clock.after(pingMs, () => {
      this.#isPingDue = true
      this.#wake()
    })
  }
}

/** @throws Error  when the contract does not declare the event, or its ID contains a line break: a defect */
function encode(
  { id, event, data }: ServerEvent,
  { schemas, dialect }: Pick<EventStream, 'schemas' | 'dialect'>,
): Uint8Array {
  const schema = schemas[event]
  if (!schema) throw new Error(`an event named ${JSON.stringify(event)} is not declared`)
  if (/[\r\n\0]/.test(id)) throw new Error('an event has a line end in its id')
  if (dialect === 'openai') return Buffer.from(openAiEvent(event, schema.parse(data)))
  const place = id === '' ? '' : `id: ${id}\n`
  return Buffer.from(`event: ${event}\ndata: ${JSON.stringify(schema.parse(data))}\n${place}\n`)
}
