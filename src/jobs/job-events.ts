import type { Job } from '../contract/jobs.ts'

type JobListener = (job: Job) => void

/** Notifies listeners in this process of jobs that this process changes. */
export class JobEvents {
  readonly #listeners = new Set<JobListener>()

  /** Registers a listener. Returns a function that removes it. */
  listen(listener: JobListener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  emit(job: Job): void {
    for (const listener of this.#listeners) listener(job)
  }
}
