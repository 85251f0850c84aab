import type { Clock } from '../../base/clock.ts'
import { abortWith, TimedOut } from '../../base/deadline.ts'
import { BodyTooLong, limitBytes, readBody } from '../../base/read-body.ts'
import type { OutboundResponse } from '../outbound.ts'
import { eventData } from './event-stream.ts'
import { errorResponse, readJsonResponse, unreadableResponse, wholeResponseBytesMax } from './exchange.ts'
import { errorIn, statusOf } from './known-refusals.ts'
import { ProviderFailure, providerTimeout } from './provider-failure.ts'
import { withRetries } from './retry.ts'

/**
 * Maximum time to wait for the end of the body after the last event. A connection can be reused only if the whole body
 * was read.
 */
const lingerMs = 250

/** Maximum size of a streamed response. */
const streamedBytesMax = 64_000_000

/** Options for reading a streamed answer. */
export interface StreamOptions {
  readonly clock: Clock
  readonly signal: AbortSignal
  /** Returns true for an event with content. After the first such event, the request is not repeated. */
  readonly startsAnswer: (event: unknown) => boolean
}

interface StreamSettings extends StreamOptions {
  readonly idleMs: number
  readonly totalMs: number
  readonly credential: string | undefined
  /** Maximum number of retries before the answer starts. */
  readonly retriesMax: number
  /** True if requests that time out must not be repeated. */
  readonly isLocal: boolean
  readonly send: (signal: AbortSignal) => Promise<OutboundResponse>
  /** Converts the error of the last attempt to the failure to throw. */
  readonly toProviderFailure: (cause: unknown) => ProviderFailure
}

/** A stream whose first event with content has arrived. */
interface StartedStream {
  readonly first: IteratorResult<unknown, void>
  readonly rest: AsyncGenerator<unknown, void, undefined>
  readonly attempt: StreamAttempt
}

/** Yields the events of an answer. Retries after failures that occur before the first event with content. */
export async function* streamEvents(settings: StreamSettings): AsyncGenerator<unknown, void, undefined> {
  const { signal, clock, totalMs, retriesMax } = settings
  const abort = new AbortController()
  const removeAbortListener = abortWith(abort, signal)
  const cancel = clock.after(totalMs, () =>
    abort.abort(new ProviderFailure('did not finish its answer in time')),
  )
  let started: StartedStream | undefined
  try {
    started = await withRetries(() => startStream(settings, abort.signal), {
      retriesMax,
      signal: abort.signal,
    })
    for (let next = started.first; !next.done; next = await started.rest.next()) yield next.value
  } catch (error) {
    abort.signal.throwIfAborted()
    throw started ? brokenStreamFailure(error) : settings.toProviderFailure(error)
  } finally {
    cancel()
    removeAbortListener()
    started?.attempt.end()
  }
}

/**
 * Sends the request once, and reads the answer up to its first event with content.
 *
 * @throws ProviderFailure  the request must not be repeated
 * @throws ErrorResponse, TimedOut, and any error of the connection
 */
async function startStream(settings: StreamSettings, signal: AbortSignal): Promise<StartedStream> {
  const { credential } = settings
  const attempt = new StreamAttempt({ ...settings, signal })
  let isStarted = false
  try {
    const response = await settings.send(attempt.signal)
    if (response.status >= 300) await readJsonResponse(response, credential)
    const rest = attempt.events(response)
    let first = await rest.next()
    while (!first.done && !settings.startsAnswer(first.value)) first = await rest.next()
    const error = first.done ? undefined : errorIn(first.value)
    const status = statusOf(error)
    if (status !== undefined)
      throw errorResponse(status, JSON.stringify({ error }), response.headers, credential)
    isStarted = true
    return { first, rest, attempt }
  } catch (error) {
    const { signal } = attempt
    const cause = signal.aborted ? signal.reason : error
    throw settings.isLocal && cause instanceof TimedOut ? providerTimeout(cause) : cause
  } finally {
    if (!isStarted) attempt.end()
  }
}

function brokenStreamFailure(cause: unknown): ProviderFailure {
  if (cause instanceof ProviderFailure) return cause
  const problem =
    cause instanceof TimedOut
      ? 'stopped sending in the middle of its answer'
      : 'ended in the middle of its answer'
  return new ProviderFailure(problem, {}, {}, cause)
}

interface AttemptSettings {
  readonly clock: Clock
  /** Maximum time without data from the provider. */
  readonly idleMs: number
  /** Aborts the request. */
  readonly signal: AbortSignal
}

/** One attempt to stream an answer. Aborts the request if no data arrives for `idleMs`. */
class StreamAttempt {
  readonly #stop = new AbortController()
  readonly #removeAbortListener: () => void
  #cancelTimer = () => {}
  /** True after the provider has marked the end of the answer. */
  #isDone = false
  #isFullyRead = false

  constructor(private readonly settings: AttemptSettings) {
    this.#removeAbortListener = abortWith(this.#stop, settings.signal)
    this.#startTimer(settings.idleMs)
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
    this.#removeAbortListener()
    if (!this.#isFullyRead) this.#stop.abort()
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
    return JSON.parse((await readBody(this.#withIdleTimer(body), wholeResponseBytesMax)).toString())
  }

  async *#withIdleTimer(body: OutboundResponse['body']): AsyncGenerator<Uint8Array> {
    for await (const part of limitBytes(body, streamedBytesMax)) {
      if (!this.#isDone) this.#cancelTimer()
      yield part
      if (!this.#isDone) this.#startTimer(this.settings.idleMs)
    }
    this.#isFullyRead = true
  }

  #markDone(): void {
    if (!this.#isDone) this.#startTimer(lingerMs)
    this.#isDone = true
  }

  #startTimer(ms: number): void {
    this.#cancelTimer()
    this.#cancelTimer = this.settings.clock.after(ms, () => this.#stop.abort(new TimedOut(ms)))
  }
}
