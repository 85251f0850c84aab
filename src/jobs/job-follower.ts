import type { Job } from '../contract/jobs.ts'
import type { ServerEvent } from '../contract/route.ts'

export interface JobFollowerParts {
  /** Returns the current job; undefined if it was deleted. */
  readonly read: () => Promise<Job | undefined>
  /** `updatedAt` of the last change that the client knows; null if it knows none. */
  readonly after: string | null
  /** Calls back when the job may have changed. Returns a function that cancels it. */
  readonly wait: (wake: () => void) => () => void
}

/**
 * Yields the latest state of a job after each change, until it ends or is deleted.
 *
 * An iterator, not a generator, because `return` of a generator waits for a pending `next`, which can take
 * long here.
 *
 * @see docs/http.md#event-streams
 */
export class JobFollower implements AsyncIterableIterator<ServerEvent> {
  readonly #parts: JobFollowerParts
  readonly #events: ServerEvent[] = []
  #lastUpdatedAt: string
  #isOver = false
  #wake = () => {}

  constructor(parts: JobFollowerParts) {
    this.#parts = parts
    this.#lastUpdatedAt = parts.after ?? ''
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async next(): Promise<IteratorResult<ServerEvent>> {
    for (;;) {
      const found = this.#events.shift()
      if (found !== undefined) return { done: false, value: found }
      if (this.#isOver) return { done: true, value: undefined }
      await this.#readNext()
    }
  }

  async return(): Promise<IteratorResult<ServerEvent>> {
    this.#isOver = true
    this.#events.length = 0
    this.#wake()
    return { done: true, value: undefined }
  }

  async #readNext(): Promise<void> {
    let callOff = () => {}
    const woken = new Promise<void>(resolve => {
      this.#wake = resolve
      // Registered before reading, so that no change is missed in the meantime.
      callOff = this.#parts.wait(resolve)
    })
    try {
      const job = await this.#parts.read()
      if (!job) this.#isOver = true
      else if (job.status === 'succeeded' || job.status === 'failed') this.#end(job, job.status)
      else if (job.updatedAt > this.#lastUpdatedAt) this.#emit(job)
      else await woken
    } finally {
      callOff()
    }
  }

  #emit(job: Job): void {
    this.#lastUpdatedAt = job.updatedAt
    this.#events.push({ id: job.updatedAt, event: 'job', data: job })
  }

  #end(job: Job, status: string): void {
    this.#emit(job)
    this.#events.push({ id: job.updatedAt, event: 'done', data: { status } })
    this.#isOver = true
  }
}
