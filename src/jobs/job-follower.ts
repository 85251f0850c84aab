import type { Job } from '../contract/jobs.ts'
import type { ServerEvent } from '../contract/route.ts'

export interface JobFollowerDependencies {
  /** Returns the current job; undefined if it was deleted. */
  readonly read: () => Promise<Job | undefined>
  /** `updatedAt` of the last change that the client has received; null if it has received none. */
  readonly after: string | null
  /** Calls `wake` when the job may have changed. Returns a function that cancels the call. */
  readonly wait: (wake: () => void) => () => void
}

/**
 * Yields the latest state of a job after each change, until the job ends or is deleted.
 *
 * This class is not a generator, because the `return` method of a generator waits for a pending `next`, which can take
 * a long time.
 *
 * @see docs/http.md#event-streams
 */
export class JobFollower implements AsyncIterableIterator<ServerEvent> {
  readonly #deps: JobFollowerDependencies
  readonly #events: ServerEvent[] = []
  #lastUpdatedAt: string
  #isFinished = false
  #wake = () => {}

  constructor(deps: JobFollowerDependencies) {
    this.#deps = deps
    this.#lastUpdatedAt = deps.after ?? ''
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async next(): Promise<IteratorResult<ServerEvent>> {
    for (;;) {
      const event = this.#events.shift()
      if (event !== undefined) return { done: false, value: event }
      if (this.#isFinished) return { done: true, value: undefined }
      await this.#readNext()
    }
  }

  async return(): Promise<IteratorResult<ServerEvent>> {
    this.#isFinished = true
    this.#events.length = 0
    this.#wake()
    return { done: true, value: undefined }
  }

  async #readNext(): Promise<void> {
    let cancelWait = () => {}
    const change = new Promise<void>(resolve => {
      this.#wake = resolve
      // Start waiting before reading the job, so that no change is missed.
      cancelWait = this.#deps.wait(resolve)
    })
    try {
      const job = await this.#deps.read()
      if (!job) this.#isFinished = true
      else if (job.status === 'succeeded' || job.status === 'failed') this.#end(job, job.status)
      else if (job.updatedAt > this.#lastUpdatedAt) this.#emit(job)
      else await change
    } finally {
      cancelWait()
    }
  }

  #emit(job: Job): void {
    this.#lastUpdatedAt = job.updatedAt
    this.#events.push({ id: job.updatedAt, event: 'job', data: job })
  }

  #end(job: Job, status: string): void {
    this.#emit(job)
    this.#events.push({ id: job.updatedAt, event: 'done', data: { status } })
    this.#isFinished = true
  }
}
