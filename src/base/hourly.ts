import type { Clock } from './clock.ts'

const everyMs = 3_600_000

/** Work that is done now and every hour, never twice at a time. */
export class Hourly {
  readonly #clock: Clock
  readonly #work: () => Promise<void>
  #running: Promise<void> | undefined
  #isOver = false
  #callOff = () => {}

  /** @param work  tells of its failures itself, and ends early when `isOver` */
  constructor(clock: Clock, work: () => Promise<void>) {
    this.#clock = clock
    this.#work = work
  }

  get isOver(): boolean {
    return this.#isOver
  }

  start(): void {
    this.now()
    this.#callOff = this.#clock.after(everyMs, () => this.start())
  }

  /** Do it once more, unless it is being done. */
  now(): void {
    this.#running ??= this.#work().finally(() => {
      this.#running = undefined
    })
  }

  /** Ends when what is under way has ended. */
  async close(): Promise<void> {
    this.#isOver = true
    this.#callOff()
    await this.#running
  }
}
