import type { Job } from '../contract/jobs.ts'

type Listener = (job: Job) => void

/** What this process changes of jobs, told to those here who wait for it. */
export class JobNews {
  readonly #listeners = new Set<Listener>()

  /** Call back with each job that changed. Returns a function that ends it. */
  listen(listener: Listener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  tell(job: Job): void {
    for (const listener of this.#listeners) listener(job)
  }
}
