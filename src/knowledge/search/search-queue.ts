import { type AuthContext, subjectName } from '../../access/subject.ts'
import { FairLimiter } from '../../base/fair-limiter.ts'
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
  readonly #limiter: FairLimiter

  constructor(runningMax = RUNNING_MAX) {
    this.#limiter = new FairLimiter(runningMax)
  }

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
    const member = subjectName(auth) ?? `anonymous ${client}`
    if (this.#limiter.countWaiting(workspaceId, member) >= waitingMax)
      throw overloaded('too many of your requests are waiting')
    return this.#limiter.run({ workspaceId, member, signal }, search)
  }
}
