import type { Clock } from '../../base/clock.ts'
import { abortWith, TimedOut } from '../../base/deadline.ts'
import { BodyTooLong, limitBytes, readBody } from '../../base/read-body.ts'
import type { OutboundResponse } from '../outbound.ts'
import { eventData } from './event-stream.ts'
import { errorResponse, providerResponseBytesMax, readJsonResponse, unreadableResponse } from './exchange.ts'
import { errorIn, statusOf } from './known-refusals.ts'
import { ProviderFailure, providerTimeout } from './provider-failure.ts'
import { withRetries } from './retry.ts'

/**
 * Time to wait for the end of the body after the last event. A connection can be reused only if the whole body was
 * read.
 */
const lingerMs = 250

/** Options for reading a streamed answer. */
export interface StreamOptions {
  readonly clock: Clock
  readonly signal: AbortSignal
  /** Returns true for an event with content. After the first one, the request is not repeated. */
  readonly startsAnswer: (event: unknown) => boolean
}

interface StreamParts extends StreamOptions {
  readonly idleMs: number
  readonly totalMs: number
  readonly credential: string | undefined
  /** Maximum number of retries before the answer starts. */
  readonly retriesMax: number
  /** True to not repeat requests that time out. */
  readonly isLocal: boolean
  readonly send: (signal: AbortSignal) => Promise<OutboundResponse>
  /** Returns the failure to throw for the error of the last attempt. */
  readonly toProviderFailure: (cause: unknown) => ProviderFailure
}

/** A stream whose first event with content has arrived. */
interface StartedStream {
  readonly first: IteratorResult<unknown, void>
  readonly rest: AsyncGenerator<unknown, void, undefined>
  readonly attempt: StreamAttempt
}

/** Yields the events of an answer. Retries after a failure that occurs before the first event with content. */
export async function* streamEvents(parts: StreamParts): AsyncGenerator<unknown, void, undefined> {
  const { signal, clock, totalMs, retriesMax } = parts
  const abort = new AbortController()
  const unlink = abortWith(abort, signal)
  const cancel = clock.after(totalMs, () =>
    abort.abort(new ProviderFailure('did not finish its answer in time')),
  )
  let started: StartedStream | undefined
  try {
    started = await withRetries(() => startStream(parts, abort.signal), { retriesMax, signal: abort.signal })
    for (let next = started.first; !next.done; next = await started.rest.next()) yield next.value
  } catch (error) {
    abort.signal.throwIfAborted()
    throw started ? streamBroken(error) : parts.toProviderFailure(error)
  } finally {
    cancel()
    unlink()
    started?.attempt.end()
  }
}

/**
 * Sends the request once, and reads the answer up to its first event with content.
 *
 * @throws ProviderFailure  the request must not be repeated
 * @throws ErrorResponse, TimedOut, and any error of the connection
 */
async function startStream(parts: StreamParts, signal: AbortSignal): Promise<StartedStream> {
  const { credential } = parts
  const attempt = new StreamAttempt({ ...parts, signal })
  let isStarted = false
  try {
    const response = await parts.send(attempt.signal)
    if (response.status >= 300) await readJsonResponse(response, credential)
    const rest = attempt.events(response)
    let first = await rest.next()
    while (!first.done && !parts.startsAnswer(first.value)) first = await rest.next()
    const error = first.done ? undefined : errorIn(first.value)
    const status = statusOf(error)
    if (status !== undefined)
      throw errorResponse(status, JSON.stringify({ error }), response.headers, credential)
    isStarted = true
    return { first, rest, attempt }
  } catch (error) {
    const { signal } = attempt
    const cause = signal.aborted ? signal.reason : error
    throw parts.isLocal && cause instanceof TimedOut ? providerTimeout(cause) : cause
  } finally {
    if (!isStarted) attempt.end()
  }
}

function streamBroken(cause: unknown): ProviderFailure {
  if (cause instanceof ProviderFailure) return cause
  const problem =
    cause instanceof TimedOut
      ? 'stopped sending in the middle of its answer'
      : 'ended in the middle of its answer'
  return new ProviderFailure(problem, {}, {}, cause)
}

interface AttemptParts {
  readonly clock: Clock
  /** Maximum time without data from the provider. */
  readonly idleMs: number
  /** Aborts the request. */
  readonly signal: AbortSignal
}

/** One attempt to stream an answer. Aborted if no data arrives for too long. */
class StreamAttempt {
  readonly #stop = new AbortController()
  readonly #unlink: () => void
  #cancelTimer = () => {}
  /** True after the provider marked the end of the answer. */
  #isDone = false
  #isRead = false

  constructor(private readonly parts: AttemptParts) {
    this.#unlink = abortWith(this.#stop, parts.signal)
    this.#startTimer(parts.idleMs)
  }

  get signal(): AbortSignal {
    return this.#stop.signal
  }

  /**
   * Yields the events of the answer as parsed JSON, until the provider marks the end. Then waits briefly for the rest
   * of the body.
   *
   * @throws ProviderFailure  the answer cannot be read, or ends without the end marker
   * @throws TimedOut, and any error of the connection
   */
  async *events(response: OutboundResponse): AsyncGenerator<unknown, void, undefined> {
    try {
      if (/\bjson\b/i.test(response.headers.get('content-type') ?? '')) yield await this.#parseWhole(response)
      else yield* this.#parseEvents(eventData(this.#withIdleTimer(response.body)))
    } catch (error) {
      if (error instanceof SyntaxError || error instanceof BodyTooLong || error instanceof RangeError)
        throw unreadableResponse(error)
      throw this.signal.aborted ? this.signal.reason : error
    }
  }

  /** Ends the attempt. Aborts the request, unless its response was read completely. */
  end(): void {
    this.#cancelTimer()
    this.#unlink()
    if (!this.#isRead) this.#stop.abort()
  }

  async *#parseEvents(events: AsyncIterable<string>): AsyncGenerator<unknown, void, undefined> {
    let eventCount = 0
    try {
      for await (const data of events) {
        eventCount++
        if (data.trim() === '[DONE]') this.#markDone()
        if (!this.#isDone) yield JSON.parse(data) as unknown
      }
    } catch (error) {
      if (!this.#isDone) throw error
    }
    if (this.#isDone) return
    throw new ProviderFailure(
      eventCount === 0 ? 'sent a response that cannot be read' : 'ended in the middle of its answer',
    )
  }

  async #parseWhole({ body }: OutboundResponse): Promise<unknown> {
    return JSON.parse((await readBody(this.#withIdleTimer(body), providerResponseBytesMax)).toString())
  }

  async *#withIdleTimer(body: OutboundResponse['body']): AsyncGenerator<Uint8Array> {
    for await (const part of limitBytes(body, providerResponseBytesMax)) {
      if (!this.#isDone) this.#cancelTimer()
      yield part
      if (!this.#isDone) this.#startTimer(this.parts.idleMs)
    }
    this.#isRead = true
  }

  #markDone(): void {
    if (!this.#isDone) this.#startTimer(lingerMs)
    this.#isDone = true
  }

  #startTimer(ms: number): void {
    this.#cancelTimer()
    this.#cancelTimer = this.parts.clock.after(ms, () => this.#stop.abort(new TimedOut(ms)))
  }
}
