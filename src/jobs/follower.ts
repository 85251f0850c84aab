import type { Job } from '../contract/jobs.ts'
import type { ServerEvent } from '../contract/route.ts'

export interface JobFollowerParts {
  /** The job as it is; undefined when it is gone. */
  readonly read: () => Promise<Job | undefined>
  /** `updatedAt` of the last change that is known already. */
  readonly after: string | null
  /** Call back when it may have changed; returns a function that calls it off. */
  readonly wait: (wake: () => void) => () => void
}

/**
 * A job at each change that is read, the newest one always, until it ends or is gone.
 *
 * An iterator and not a generator, as the `return` of a generator waits for its `next`, which here waits for what may
 * take long.
 *
 * @see docs/http.md#event-streams
 */
export class JobFollower implements AsyncIterableIterator<ServerEvent> {
  readonly #parts: JobFollowerParts
  readonly #found: ServerEvent[] = []
  #seen: string
  #isOver = false
  #wake = () => {}

  constructor(parts: JobFollowerParts) {
    this.#parts = parts
    this.#seen = parts.after ?? ''
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async next(): Promise<IteratorResult<ServerEvent>> {
    for (;;) {
      const found = this.#found.shift()
      if (found !== undefined) return { done: false, value: found }
      if (this.#isOver) return { done: true, value: undefined }
      await this.#readOn()
    }
  }

  async return(): Promise<IteratorResult<ServerEvent>> {
    this.#isOver = true
    this.#found.length = 0
    this.#wake()
    return { done: true, value: undefined }
  }

  async #readOn(): Promise<void> {
    let callOff = () => {}
    const woken = new Promise<void>(resolve => {
      this.#wake = resolve
      // Before reading: what comes while the store is asked must not be waited for in vain.
      callOff = this.#parts.wait(resolve)
    })
    try {
      const job = await this.#parts.read()
      if (!job) this.#isOver = true
      else if (job.status === 'succeeded' || job.status === 'failed') this.#end(job, job.status)
      else if (job.updatedAt > this.#seen) this.#tell(job)
      else await woken
    } finally {
      callOff()
    }
  }

  #tell(job: Job): void {
    this.#seen = job.updatedAt
    this.#found.push({ id: job.updatedAt, event: 'job', data: job })
  }

  #end(job: Job, status: string): void {
    this.#tell(job)
    this.#found.push({ id: job.updatedAt, event: 'done', data: { status } })
    this.#isOver = true
  }
}
