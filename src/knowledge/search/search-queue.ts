import { type AuthContext, subjectName } from '../../access/subject.ts'
import { FairQueue } from '../../base/fair-queue.ts'
import { overloaded } from '../../contract/errors.ts'

/** The part of a caller that the queue needs. */
export interface QueuedCaller {
  readonly auth: AuthContext
  /** Address of the client, which distinguishes anonymous callers. */
  readonly client: string
  /** Removes the work from the queue when it aborts. */
  readonly signal: AbortSignal
}

/**
 * Default maximum number of searches that run at the same time. The threads of the store serve them in the order of arrival,
 * so the next caller waits for at most this many. As many vector searches fit into one batch of the embedded store.
 */
const RUNNING_MAX = 8

/** Maximum number of waiting searches of a caller. */
const waitingMax = 2_000

/**
 * Limits the searches that run at the same time. Waiting searches start round-robin by workspace and then by caller, so
 * many searches of one do not delay those of another.
 */
export class SearchQueue {
  readonly #waiting = new FairQueue<() => void>()
  #running = 0

  constructor(private readonly runningMax = RUNNING_MAX) {}

  /**
   * Runs `search` when it is the caller's turn. `search` must not use the queue itself.
   *
   * @param search  gets true if it had to wait; the rights of the caller may have changed in the meantime
   * @throws overloaded  too many searches of the caller are waiting
   * @throws the reason of the signal, if it aborts before the search starts
   */
  async run<T>(
    { auth, client, signal }: QueuedCaller,
    workspaceId: string,
    search: (hasWaited: boolean) => Promise<T>,
  ): Promise<T> {
    signal.throwIfAborted()
    const hasWaited = this.#running >= this.runningMax
    if (hasWaited) await this.#wait(workspaceId, subjectName(auth) ?? `anonymous ${client}`, signal)
    else this.#running++
    try {
      return await search(hasWaited)
    } finally {
      const startNext = this.#waiting.take()
      if (startNext) startNext()
      else this.#running--
    }
  }

  /** Resolves when an ended search has passed its place on. */
  #wait(workspaceId: string, caller: string, signal: AbortSignal): Promise<void> {
    if (this.#waiting.count(workspaceId, caller) >= waitingMax)
      throw overloaded('too many of your requests are waiting')
    return new Promise((resolve, reject) => {
      const start = () => {
        signal.removeEventListener('abort', drop)
        resolve()
      }
      const drop = () => {
        this.#waiting.delete(workspaceId, caller, start)
        reject(signal.reason)
      }
      this.#waiting.add(workspaceId, caller, start)
      signal.addEventListener('abort', drop, { once: true })
    })
  }
}
