import type { Clock } from '../base/clock.ts'
import { asWbError } from './envelope.ts'
import type { Exchange, Shared } from './exchange.ts'

/** Headers of an answer that comes as events. */
export const streamHeaders = {
  'cache-control': 'no-cache, no-store',
  // Else nginx gathers events until its buffer is full.
  'x-accel-buffering': 'no',
}

/** An empty first chunk, which sends the headers of the response before the first event. */
const headOnly = new Uint8Array(0)

/** For this long a caller that was asked is let read on. */
const sureMs = 1_000

/** The right of a caller to a stream, asked for again while it reads. */
class ReadingRight {
  #askedAt: number

  /** @param stillAllowed  rejects when the caller would be refused now */
  constructor(
    private readonly clock: Clock,
    private readonly stillAllowed: () => Promise<unknown>,
  ) {
    this.#askedAt = clock.now()
  }

  /**
   * Ask before the caller is told more, unless that was just done.
   *
   * @param atOnce  also where it was
   */
  async confirm(atOnce = false): Promise<void> {
    const now = this.clock.now()
    if (!atOnce && now - this.#askedAt < sureMs) return
    await this.stillAllowed()
    this.#askedAt = now
  }
}

export type Controller = ReadableStreamDefaultController<Uint8Array>

export interface OutgoingParts {
  readonly shared: Shared
  readonly current: Exchange
  /** Rejects when the caller would be refused now. */
  readonly stillAllowed: () => Promise<unknown>
  /** Called when it is over. */
  readonly countOff: () => void
  /** It ends when the runtime drains; else it is let finish. */
  readonly endsOnDrain: boolean
}

/**
 * A body that comes piece by piece, one for each time that the reader asks. It is over when its source is, when the
 * reader goes away, when an error is met, or when the runtime drains; then what it holds is let go of, once.
 */
export abstract class Outgoing {
  protected readonly right: ReadingRight
  protected isOver = false
  /** Undone when it is over. */
  readonly #holds: (() => void)[]

  constructor(private readonly parts: OutgoingParts) {
    this.right = new ReadingRight(parts.shared.clock, parts.stillAllowed)
    this.#holds = [parts.countOff]
  }

  start(controller: Controller): void {
    const { shared, current, endsOnDrain } = this.parts
    const { signal } = current.incoming
    shared.began()
    const end = () => this.close(controller)
    signal.addEventListener('abort', end)
    this.hold(() => signal.removeEventListener('abort', end))
    if (endsOnDrain) this.hold(shared.onDrain(end))
    controller.enqueue(headOnly)
    this.begin(controller)
    if (signal.aborted || (endsOnDrain && shared.isDraining())) end()
  }

  async pull(controller: Controller): Promise<void> {
    try {
      await this.give(controller)
    } catch (error) {
      this.fail(controller, error)
    }
  }

  cancel(): void {
    this.#end()
  }

  /** Starts the timers of the stream. */
  protected abstract begin(controller: Controller): void

  /** Tell the next piece, or close where there is none. */
  protected abstract give(controller: Controller): Promise<void>

  /** Put the source away; the work of the request lasts until that is done. */
  protected abstract letGo(): Promise<unknown>

  /** @param undo  called when it is over */
  protected hold(undo: () => void): void {
    this.#holds.push(undo)
  }

  protected close(controller: Controller): void {
    if (this.#end()) controller.close()
  }

  protected fail(controller: Controller, error: unknown): void {
    if (!this.isOver) this.tell(error)
    this.close(controller)
  }

  /** Say why it ended. Its status is long sent: that is in the log alone, and a reader that comes again is told. */
  protected tell(error: unknown): void {
    const { shared, current } = this.parts
    const { requestId } = current.trace
    if (asWbError(error).status < 500) shared.log.info({ requestId, reason: 'refused' }, 'a stream ended')
    else shared.log.error({ requestId, error }, 'a stream broke')
  }

  /** @returns false when it was over already */
  #end(): boolean {
    if (this.isOver) return false
    this.isOver = true
    for (const undo of this.#holds) undo()
    this.letGo()
      .catch(error => this.tell(error))
      .finally(() => this.parts.shared.ended())
    return true
  }
}
