import type { Clock } from './clock.ts'

/** An hour, in milliseconds. */
export const hourMs = 3_600_000

/** Runs work immediately and then at regular intervals, but never twice at the same time. */
export class RepeatedTask {
  readonly #clock: Clock
  readonly #intervalMs: number
  readonly #work: () => Promise<void>
  #running: Promise<void> | undefined
  #isClosed = false
  #cancelTimer = () => {}

  /** @param work  must handle its own errors, and should end early when `isClosed` is true */
  constructor(clock: Clock, intervalMs: number, work: () => Promise<void>) {
    this.#clock = clock
    this.#intervalMs = intervalMs
    this.#work = work
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  start(): void {
    this.runNow()
    this.#cancelTimer = this.#clock.after(this.#intervalMs, () => this.start())
  }

  /** Runs the work now, unless it is already running. */
  runNow(): void {
    this.#running ??= this.#work().finally(() => {
      this.#running = undefined
    })
  }

  /** Stops the timer, and waits for running work. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#cancelTimer()
    await this.#running
  }
}
