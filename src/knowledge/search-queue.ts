import { type AuthContext, subjectName } from '../access/subject.ts'

/** The part of a caller that the queue needs. */
export interface QueuedCaller {
  readonly auth: AuthContext
  /** Address of the client, which distinguishes anonymous callers. */
  readonly client: string
  /** Removes the work from the queue when it aborts. */
  readonly signal: AbortSignal
}

/**
 * Maximum number of searches that run at the same time. The threads of the store serve them in the order of arrival, so
 * the next caller waits for at most this many. As many vector searches fit into one batch of the embedded store.
 */
const RUNNING_MAX = 8

/**
 * Limits the searches that run at the same time. Waiting searches start round-robin by caller, so many searches of one
 * caller do not delay those of another.
 */
export class SearchQueue {
  readonly #waiting = new Map<string, Set<() => void>>()
  #running = 0

  /**
   * Runs `search` when it is the caller's turn. `search` must not use the queue itself.
   *
   * @throws the reason of the signal, if it aborts before the search starts
   */
  async run<T>({ auth, client, signal }: QueuedCaller, search: () => Promise<T>): Promise<T> {
    signal.throwIfAborted()
    if (this.#running < RUNNING_MAX) this.#running++
    else await this.#wait(subjectName(auth) ?? `anonymous ${client}`, signal)
    try {
      return await search()
    } finally {
      if (!this.#startNext()) this.#running--
    }
  }

  /** Resolves when an ended search has passed its place on. */
  #wait(key: string, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const waiting = this.#waiting.get(key) ?? new Set()
      this.#waiting.set(key, waiting)
      const start = () => {
        signal.removeEventListener('abort', drop)
        resolve()
      }
      const drop = () => {
        waiting.delete(start)
        if (waiting.size === 0) this.#waiting.delete(key)
        reject(signal.reason)
      }
      waiting.add(start)
      signal.addEventListener('abort', drop, { once: true })
    })
  }

  /** Starts the first search of the next caller. Returns false if none is waiting. */
  #startNext(): boolean {
    for (const [key, waiting] of this.#waiting) {
      const [start] = waiting
      waiting.delete(start!)
      // A map iterates in insertion order, so inserting the caller again moves it to the end.
      this.#waiting.delete(key)
      if (waiting.size > 0) this.#waiting.set(key, waiting)
      start!()
      return true
    }
    return false
  }
}
