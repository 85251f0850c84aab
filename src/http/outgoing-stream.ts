import type { Clock } from '../base/clock.ts'
import { toWbError } from './error-reply.ts'
import type { AppContext, Exchange } from './exchange.ts'

/** Response headers of an event stream. */
export const streamHeaders = {
  'cache-control': 'no-cache, no-store',
  // Prevents nginx from buffering events until its buffer is full.
  'x-accel-buffering': 'no',
}

/** Empty first chunk, which makes Node send the response headers before the first event. */
const emptyChunk = new Uint8Array(0)

/** Time in milliseconds for which an access check stays valid. */
const accessCheckMs = 1_000

/** The caller's access to an open stream, which is checked again before data is sent. */
class StreamAccess {
  #checkedAt: number

  /** @param confirmAccess  rejects if the caller no longer has access */
  constructor(
    private readonly clock: Clock,
    private readonly confirmAccess: () => Promise<unknown>,
  ) {
    this.#checkedAt = clock.now()
  }

  /**
   * Checks access, unless it was checked within the last second.
   *
   * @param force  true to check again even within that second
   */
  async confirm(force = false): Promise<void> {
    const now = this.clock.now()
    if (!force && now - this.#checkedAt < accessCheckMs) return
    await this.confirmAccess()
    this.#checkedAt = now
  }
}

export type StreamController = ReadableStreamDefaultController<Uint8Array>

export interface OutgoingStreamOptions {
  readonly context: AppContext
  readonly exchange: Exchange
  /** Rejects if the caller no longer has access. */
  readonly confirmAccess: () => Promise<unknown>
  /** Called once when the stream ends. */
  readonly release: () => void
  /** True to end the stream when the runtime shuts down; false to let it finish. */
  readonly endsOnDrain: boolean
}

/**
 * A response body that is sent in parts, one for each read of the client. It ends when its source ends, when the
 * client disconnects, after an error, or (with `endsOnDrain`) when the runtime shuts down. All its resources are then
 * released.
 */
export abstract class OutgoingStream {
  protected readonly access: StreamAccess
  protected hasEnded = false
  /** Functions to call when the stream ends. */
  readonly #cleanups: (() => void)[]

  constructor(private readonly options: OutgoingStreamOptions) {
    this.access = new StreamAccess(options.context.clock, options.confirmAccess)
    this.#cleanups = [options.release]
  }

  start(controller: StreamController): void {
    const { context, exchange, endsOnDrain } = this.options
    const { signal } = exchange.incoming
    context.requestStarted()
    const end = () => this.close(controller)
    signal.addEventListener('abort', end)
    this.onEnd(() => signal.removeEventListener('abort', end))
    if (endsOnDrain) this.onEnd(context.onDrain(end))
    controller.enqueue(emptyChunk)
    this.startTimers(controller)
    if (signal.aborted || (endsOnDrain && context.isDraining())) end()
  }

  async pull(controller: StreamController): Promise<void> {
    try {
      await this.sendNext(controller)
    } catch (error) {
      this.fail(controller, error)
    }
  }

  cancel(): void {
    this.#end()
  }

  /** Starts the timers of the stream. */
  protected abstract startTimers(controller: StreamController): void

  /** Sends the next part, or closes the stream if its source has ended. */
  protected abstract sendNext(controller: StreamController): Promise<void>

  /** Releases the source. The request counts as in progress until the promise settles. */
  protected abstract releaseSource(): Promise<unknown>

  /** Registers a function to call when the stream ends. */
  protected onEnd(cleanup: () => void): void {
    this.#cleanups.push(cleanup)
  }

  protected close(controller: StreamController): void {
    if (this.#end()) controller.close()
  }

  protected fail(controller: StreamController, error: unknown): void {
    if (!this.hasEnded) this.report(error)
    this.close(controller)
  }

  /**
   * Logs why the stream ended. The client does not receive the reason, because the status has already been sent. The
   * client's next request fails with the same error.
   */
  protected report(error: unknown): void {
    const { context, exchange } = this.options
    const { requestId } = exchange.trace
    if (toWbError(error).status < 500) context.log.info({ requestId, reason: 'refused' }, 'a stream ended')
    else context.log.error({ requestId, error }, 'a stream failed')
  }

  /** Ends the stream. Returns false if it has already ended. */
  #end(): boolean {
    if (this.hasEnded) return false
    this.hasEnded = true
    for (const cleanup of this.#cleanups) cleanup()
    this.releaseSource()
      .catch(error => this.report(error))
      .finally(() => this.options.context.requestEnded())
    return true
  }
}
