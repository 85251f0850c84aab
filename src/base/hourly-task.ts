import type { Clock } from './clock.ts'

const intervalMs = 3_600_000

/** Runs work at once and then every hour, but never twice at the same time. */
export class HourlyTask {
  readonly #clock: Clock
  readonly #work: () => Promise<void>
  #running: Promise<void> | undefined
  #isOver = false
  #callOff = () => {}

  /** @param work  reports its own failures, and ends early when `isOver` is true */
  constructor(clock: Clock, work: () => Promise<void>) {
    this.#clock = clock
    this.#work = work
  }

  get isOver(): boolean {
    return this.#isOver
  }

  start(): void {
    this.now()
    this.#callOff = this.#clock.after(intervalMs, () => this.start())
  }

  /** Runs the work once more, unless it is running. */
  now(): void {
    this.#running ??= this.#work().finally(() => {
      this.#running = undefined
    })
  }

  /** Stops, and waits for running work. */
  async close(): Promise<void> {
    this.#isOver = true
    this.#callOff()
    await this.#running
  }
}
