import type { z } from 'zod'
import type { ServerEvent } from '../contract/route.ts'
import { asWbError } from './envelope.ts'
import { callerOf, type Exchange, headersOf, type Shared } from './exchange.ts'
import { withHeaders } from './headers.ts'
import { Reply } from './reply.ts'

/** How often a silent stream says that it lives, and how soon it ends for a caller that may not read it any more. */
const pingMs = 15_000

/** For this long a caller that was asked is let read on. */
const sureMs = 1_000

export interface EventStream {
  readonly events: AsyncIterable<ServerEvent>
  /** Data leaves through the one of its event, so that a field which the contract does not declare cannot leak. */
  readonly schemas: Readonly<Record<string, z.ZodType>>
  /** Rejects when the caller would be refused now. */
  readonly stillAllowed: () => Promise<unknown>
}

/**
 * Events as they happen, until the reader goes away, loses the right to them, or the runtime drains. They are asked
 * for as they are read, so that a slow reader makes nothing pile up.
 *
 * @throws rate_limited  the caller reads too many already
 * @see https://html.spec.whatwg.org/multipage/server-sent-events.html
 */
export function eventStream(shared: Shared, current: Exchange, stream: EventStream): Reply {
  const { isFromOutside } = current.incoming
  const countOff = isFromOutside ? shared.openStreams.open(callerOf(shared, current)) : () => {}
  const body = new ReadableStream(new EventBody(shared, current, stream, countOff), { highWaterMark: 0 })
  const headers = withHeaders(headersOf(shared, current, 'text/event-stream'), {
    'cache-control': 'no-cache, no-store',
    // Else nginx gathers events until its buffer is full.
    'x-accel-buffering': 'no',
  })
  return new Reply(200, headers, body)
}

type Controller = ReadableStreamDefaultController<Uint8Array>

/** What pulls events out of their source, one for each time that the reader asks. */
class EventBody {
  readonly #shared: Shared
  readonly #current: Exchange
  readonly #stream: EventStream
  readonly #source: AsyncIterator<ServerEvent>
  /** Undone when it is over. */
  #holds: (() => void)[]
  /** When the caller was last asked. */
  #askedAt: number
  #callOffPing = () => {}
  #isPingDue = false
  /** The event that was asked for. */
  #next: Promise<IteratorResult<ServerEvent>> | undefined
  #hasArrived = false
  #isOver = false
  #wake = () => {}

  /** @param countOff  called when it is over */
  constructor(shared: Shared, current: Exchange, stream: EventStream, countOff: () => void) {
    this.#holds = [countOff]
    this.#askedAt = shared.clock.now()
    this.#shared = shared
    this.#current = current
    this.#stream = stream
    this.#source = stream.events[Symbol.asyncIterator]()
  }

  start(controller: Controller): void {
    this.#shared.began()
    const { signal } = this.#current.incoming
    const end = () => this.#close(controller)
    signal.addEventListener('abort', end)
    this.#holds.push(this.#shared.onDrain(end), () => signal.removeEventListener('abort', end))
    // The head of the response leaves with the first bytes, which may be long in coming.
    this.#ping(controller)
    if (signal.aborted || this.#shared.isDraining()) end()
  }

  async pull(controller: Controller): Promise<void> {
    try {
      this.#next ??= this.#ask()
      if (!this.#hasArrived && !this.#isPingDue) await this.#news()
      await this.#confirm()
      if (this.#isOver) return
      if (this.#isPingDue) this.#ping(controller)
      else await this.#give(controller, this.#next)
    } catch (error) {
      this.#tell(error)
      this.#close(controller)
    }
  }

  /** Ask the caller again before it is told more, unless that was just done. */
  async #confirm(): Promise<void> {
    const now = this.#shared.clock.now()
    if (!this.#isPingDue && now - this.#askedAt < sureMs) return
    await this.#stream.stillAllowed()
    this.#askedAt = now
  }

  cancel(): void {
    this.#end()
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

  async #give(controller: Controller, next: Promise<IteratorResult<ServerEvent>>): Promise<void> {
    this.#next = undefined
    this.#hasArrived = false
    const { done, value } = await next
    if (done) this.#close(controller)
    else if (!this.#isOver) controller.enqueue(encode(value, this.#stream.schemas))
  }

  #ping(controller: Controller): void {
    controller.enqueue(ping)
    this.#isPingDue = false
    this.#callOffPing = this.#shared.clock.after(pingMs, () => {
      this.#isPingDue = true
      this.#wake()
    })
  }

  #close(controller: Controller): void {
    if (this.#end()) controller.close()
  }

  /** @returns false when it was over already */
  #end(): boolean {
    if (this.#isOver) return false
    this.#isOver = true
    this.#callOffPing()
    for (const undo of this.#holds) undo()
    this.#wake()
    this.#source.return?.().catch(error => this.#tell(error))
    this.#shared.ended()
    return true
  }

  /** The status is long sent: what went wrong is in the log alone, and the reader comes again and is told. */
  #tell(error: unknown): void {
    const { log } = this.#shared
    const { requestId } = this.#current.trace
    if (asWbError(error).status < 500) log.info({ requestId, reason: 'refused' }, 'a stream ended')
    else log.error({ requestId, error }, 'a stream broke')
  }
}

const ping = Buffer.from(': ping\n\n')

/** @throws Error  the contract declares no such event, or its id would forge a field: a defect */
function encode({ id, event, data }: ServerEvent, schemas: EventStream['schemas']): Uint8Array {
  const schema = schemas[event]
  if (!schema) throw new Error(`an event named ${JSON.stringify(event)} is not declared`)
  if (/[\r\n\0]/.test(id)) throw new Error('an event has a line end in its id')
  return Buffer.from(`event: ${event}\ndata: ${JSON.stringify(schema.parse(data))}\nid: ${id}\n\n`)
}
