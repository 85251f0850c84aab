import type { Clock } from '../../base/clock.ts'
import { abortWith, TimedOut } from '../../base/deadline.ts'
import { BodyTooLong, limitBytes, readBody } from '../../base/read-body.ts'
import type { OutboundResponse } from '../outbound.ts'
import { eventData } from './event-stream.ts'
import { errorResponse, providerAnswerBytesMax, readJsonAnswer, unreadableAnswer } from './exchange.ts'
import { errorIn, statusOf } from './known-refusals.ts'
import { ProviderFailure, providerTimeout } from './provider-failure.ts'
import { withRetries } from './retry.ts'

/**
 * Time to wait for the end of the body after the last event. Only a connection that was read completely is
 * reused.
 */
const lingerMs = 250

/** How a streamed answer is read. */
export interface StreamOptions {
  readonly clock: Clock
  readonly signal: AbortSignal
  /** Returns true for an event with content. After the first one, the request is not repeated. */
  readonly begins: (event: unknown) => boolean
}

interface StreamParts extends StreamOptions {
  readonly idleMs: number
  readonly totalMs: number
  readonly credential: string | undefined
  /** Maximum number of retries before the answer begins. */
  readonly retriesMax: number
  /** True if requests that time out are not repeated. */
  readonly isLocal: boolean
  readonly send: (signal: AbortSignal) => Promise<OutboundResponse>
  /** Returns the failure for an error of the last attempt. */
  readonly toProviderFailure: (cause: unknown) => ProviderFailure
}

/** First event with content, and the events after it. */
interface StartedStream {
  readonly first: IteratorResult<unknown, void>
  readonly rest: AsyncGenerator<unknown, void, undefined>
  readonly attempt: StreamAttempt
}

/** Yields the events of an answer. A failure before the first event with content is retried. */
export async function* streamEvents(parts: StreamParts): AsyncGenerator<unknown, void, undefined> {
  const { signal, clock, totalMs, retriesMax } = parts
  const ending = new AbortController()
  const letGo = abortWith(ending, signal)
  const cancel = clock.after(totalMs, () =>
    ending.abort(new ProviderFailure('did not finish its answer in time')),
  )
  let begun: StartedStream | undefined
  try {
    begun = await withRetries(() => startStream(parts, ending.signal), { retriesMax, signal: ending.signal })
    for (let next = begun.first; !next.done; next = await begun.rest.next()) yield next.value
  } catch (error) {
    ending.signal.throwIfAborted()
    throw begun ? streamBroken(error) : parts.toProviderFailure(error)
  } finally {
    cancel()
    letGo()
    begun?.attempt.end()
  }
}

/**
 * Sends the request once, and reads the answer up to its first event with content.
 *
 * @throws ProviderFailure  the request must not be repeated
 * @throws ErrorResponse, TimedOut, and any error of the connection
 */
async function startStream(parts: StreamParts, until: AbortSignal): Promise<StartedStream> {
  const { credential } = parts
  const attempt = new StreamAttempt({ ...parts, until })
  let isBegun = false
  try {
    const answer = await parts.send(attempt.signal)
    if (answer.status >= 300) await readJsonAnswer(answer, credential)
    const rest = attempt.events(answer)
    let first = await rest.next()
    while (!first.done && !parts.begins(first.value)) first = await rest.next()
    const error = first.done ? undefined : errorIn(first.value)
    const status = statusOf(error)
    if (status !== undefined)
      throw errorResponse(status, JSON.stringify({ error }), answer.headers, credential)
    isBegun = true
    return { first, rest, attempt }
  } catch (error) {
    const { signal } = attempt
    const cause = signal.aborted ? signal.reason : error
    throw parts.isLocal && cause instanceof TimedOut ? providerTimeout(cause) : cause
  } finally {
    if (!isBegun) attempt.end()
  }
}

function streamBroken(cause: unknown): ProviderFailure {
  if (cause instanceof ProviderFailure) return cause
  const what =
    cause instanceof TimedOut
      ? 'stopped sending in the middle of its answer'
      : 'ended in the middle of its answer'
  return new ProviderFailure(what, {}, {}, cause)
}

interface AttemptParts {
  readonly clock: Clock
  /** Maximum silence of the provider, before the answer begins and between its parts. */
  readonly idleMs: number
  /** Aborts the request. */
  readonly until: AbortSignal
}

/** One request whose answer is streamed. Aborted after too long a silence. */
class StreamAttempt {
  readonly #stop = new AbortController()
  readonly #unlink: () => void
  #cancel = () => {}
  /** True after the provider marked the end of the answer. */
  #isDone = false
  #isRead = false

  constructor(private readonly parts: AttemptParts) {
    this.#unlink = abortWith(this.#stop, parts.until)
    this.#wait(parts.idleMs)
  }

  get signal(): AbortSignal {
    return this.#stop.signal
  }

  /**
   * Yields the events of the answer as parsed JSON, until the provider marks the end. Then briefly reads the
   * rest of the body.
   *
   * @throws ProviderFailure  the answer is unreadable, or ends without the mark
   * @throws TimedOut, and any error of the connection
   */
  async *events(answer: OutboundResponse): AsyncGenerator<unknown, void, undefined> {
    try {
      if (/\bjson\b/i.test(answer.headers.get('content-type') ?? '')) yield await this.#whole(answer)
      else yield* this.#parsed(eventData(this.#resetTimer(answer.body)))
    } catch (error) {
      if (error instanceof SyntaxError || error instanceof BodyTooLong || error instanceof RangeError)
        throw unreadableAnswer(error)
      throw this.signal.aborted ? this.signal.reason : error
    }
  }

  /** Releases the request, and aborts it unless it was read completely. */
  end(): void {
    this.#cancel()
    this.#unlink()
    if (!this.#isRead) this.#stop.abort()
  }

  async *#parsed(events: AsyncIterable<string>): AsyncGenerator<unknown, void, undefined> {
    let seen = 0
    try {
      for await (const data of events) {
        seen++
        if (data.trim() === '[DONE]') this.#done()
        if (!this.#isDone) yield JSON.parse(data) as unknown
      }
    } catch (error) {
      if (!this.#isDone) throw error
    }
    if (this.#isDone) return
    throw new ProviderFailure(
      seen === 0 ? 'sent an answer that cannot be read' : 'ended in the middle of its answer',
    )
  }

  async #whole({ body }: OutboundResponse): Promise<unknown> {
    return JSON.parse((await readBody(this.#resetTimer(body), providerAnswerBytesMax)).toString())
  }

  async *#resetTimer(body: OutboundResponse['body']): AsyncGenerator<Uint8Array> {
    for await (const part of limitBytes(body, providerAnswerBytesMax)) {
      if (!this.#isDone) this.#cancel()
      yield part
      if (!this.#isDone) this.#wait(this.parts.idleMs)
    }
    this.#isRead = true
  }

  #done(): void {
    if (!this.#isDone) this.#wait(lingerMs)
    this.#isDone = true
  }

  #wait(ms: number): void {
    this.#cancel()
    this.#cancel = this.parts.clock.after(ms, () => this.#stop.abort(new TimedOut(ms)))
  }
}
