import type { Job } from '../contract/jobs.ts'

type Listener = (job: Job) => void

/** Reports the jobs that this process changes to listeners in it. */
export class JobEvents {
  readonly #listeners = new Set<Listener>()

  /** Registers a listener. Returns a function that removes it. */
  listen(listener: Listener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  emit(job: Job): void {
    for (const listener of this.#listeners) listener(job)
  }
}
