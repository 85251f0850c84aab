import type { Clock } from '../base/clock.ts'
import { toWbError } from './error-reply.ts'
import type { AppContext, Exchange } from './exchange.ts'

/** Response headers of an event stream. */
export const streamHeaders = {
  'cache-control': 'no-cache, no-store',
  // Prevents nginx from buffering events until its buffer is full.
  'x-accel-buffering': 'no',
}

/** Empty first chunk, which sends the response headers before the first event. */
const headOnly = new Uint8Array(0)

/** Time in milliseconds for which an access check stays valid. */
const accessCheckMs = 1_000

/** Access of a caller to a stream, checked again while the caller reads. */
class StreamAccess {
  #askedAt: number

  /** @param stillAllowed  rejects if the caller would now be refused */
  constructor(
    private readonly clock: Clock,
    private readonly stillAllowed: () => Promise<unknown>,
  ) {
    this.#askedAt = clock.now()
  }

  /**
   * Checks access before more data is sent, unless it was checked within the last second.
   *
   * @param atOnce  true to check in any case
   */
  async confirm(atOnce = false): Promise<void> {
    const now = this.clock.now()
    if (!atOnce && now - this.#askedAt < accessCheckMs) return
    await this.stillAllowed()
    this.#askedAt = now
  }
}

export type StreamController = ReadableStreamDefaultController<Uint8Array>

export interface OutgoingStreamParts {
  readonly shared: AppContext
  readonly current: Exchange
  /** Rejects if the caller would now be refused. */
  readonly stillAllowed: () => Promise<unknown>
  /** Called once when the stream ends. */
  readonly release: () => void
  /** True if the stream ends when the runtime drains; otherwise it may finish. */
  readonly endsOnDrain: boolean
}

/**
 * A body that is sent in pieces, one for each read. It ends with its source, when the reader disconnects, on
 * an error, or when the runtime drains. Its resources are then released, once.
 */
export abstract class OutgoingStream {
  protected readonly access: StreamAccess
  protected isOver = false
  /** Cleanup functions, called when the stream ends. */
  readonly #cleanups: (() => void)[]

  constructor(private readonly parts: OutgoingStreamParts) {
    this.access = new StreamAccess(parts.shared.clock, parts.stillAllowed)
    this.#cleanups = [parts.release]
  }

  start(controller: StreamController): void {
    const { shared, current, endsOnDrain } = this.parts
    const { signal } = current.incoming
    shared.began()
    const end = () => this.close(controller)
    signal.addEventListener('abort', end)
    this.onEnd(() => signal.removeEventListener('abort', end))
    if (endsOnDrain) this.onEnd(shared.onDrain(end))
    controller.enqueue(headOnly)
    this.begin(controller)
    if (signal.aborted || (endsOnDrain && shared.isDraining())) end()
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
  protected abstract begin(controller: StreamController): void

  /** Sends the next piece, or closes the stream at the end of its source. */
  protected abstract sendNext(controller: StreamController): Promise<void>

  /** Releases the source. The request counts as in progress until this resolves. */
  protected abstract releaseSource(): Promise<unknown>

  /** @param undo  called when the stream ends */
  protected onEnd(undo: () => void): void {
    this.#cleanups.push(undo)
  }

  protected close(controller: StreamController): void {
    if (this.#end()) controller.close()
  }

  protected fail(controller: StreamController, error: unknown): void {
    if (!this.isOver) this.report(error)
    this.close(controller)
  }

  /**
   * Logs why the stream ended. The status has already been sent, so the client learns the reason only from
   * its next request.
   */
  protected report(error: unknown): void {
    const { shared, current } = this.parts
    const { requestId } = current.trace
    if (toWbError(error).status < 500) shared.log.info({ requestId, reason: 'refused' }, 'a stream ended')
    else shared.log.error({ requestId, error }, 'a stream broke')
  }

  /** Returns false if the stream had already ended. */
  #end(): boolean {
    if (this.isOver) return false
    this.isOver = true
    for (const undo of this.#cleanups) undo()
    this.releaseSource()
      .catch(error => this.report(error))
      .finally(() => this.parts.shared.ended())
    return true
  }
}
