import { setImmediate as yieldToEventLoop } from 'node:timers/promises'

/** Time in milliseconds after which work is due to let other work run. */
const turnMs = 5

/** Divides long work of a request into turns of a few milliseconds, so that other requests can run in between. */
export class WorkPacer {
  #startedAt = performance.now()

  /** @param signal  ends the work */
  constructor(private readonly signal?: AbortSignal) {}

  /** True if the work has run long enough, so that `yield` should be called. Takes less than 0.1 µs. */
  get isDue(): boolean {
    return performance.now() - this.#startedAt >= turnMs
  }

  /** Lets other work run. @throws the abort reason of the signal */
  async yield(): Promise<void> {
    await yieldToEventLoop()
    this.signal?.throwIfAborted()
    this.#startedAt = performance.now()
  }

  /** Lets other work run if it is due. @throws the abort reason of the signal */
  async yieldIfDue(): Promise<void> {
    if (this.isDue) await this.yield()
  }
}
