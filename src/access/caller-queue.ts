import { FairLimiter } from '../base/fair-limiter.ts'
import { overloaded } from '../contract/errors.ts'
import { type AuthContext, subjectName } from './subject.ts'

/** The part of a caller that the queue needs. */
export interface QueuedCaller {
  readonly auth: AuthContext
  /** Address of the client, which distinguishes anonymous callers. */
  readonly client: string
  /** Removes the work from the queue when it aborts. */
  readonly signal: AbortSignal
}

/** Returns the key that distinguishes a caller from others when callers of a workspace take turns. */
export function queueMember({ auth, client }: Pick<QueuedCaller, 'auth' | 'client'>): string {
  return subjectName(auth) ?? `anonymous ${client}`
}

/** Maximum number of waiting requests of a caller. */
const waitingMax = 2_000

/**
 * Limits the work for callers that runs at the same time. Waiting work starts round-robin by workspace and then by caller, so
 * many requests of one do not delay those of another.
 */
export class CallerQueue {
  readonly #limiter: FairLimiter

  /** @param extraMax  number of places more for workspaces without running work */
  constructor(runningMax: number, extraMax = 0) {
    this.#limiter = new FairLimiter(runningMax, extraMax)
  }

  /**
   * Runs `work` when it is the caller's turn. `work` must not use the queue itself.
   *
   * @param work  gets true if it had to wait; the rights of the caller may have changed in the meantime
   * @throws overloaded  too many requests of the caller are waiting
   * @throws the reason of the signal, if it aborts before the work starts
   */
  async run<T>(
    { auth, client, signal }: QueuedCaller,
    workspaceId: string,
    work: (hasWaited: boolean) => Promise<T>,
  ): Promise<T> {
    signal.throwIfAborted()
    const member = queueMember({ auth, client })
    if (this.#limiter.countWaiting(workspaceId, member) >= waitingMax)
      throw overloaded('too many of your requests are waiting')
    return this.#limiter.run({ workspaceId, member, signal }, work)
  }

  /** Like {@link run}, for work that has not checked the rights of the caller yet. Checks them again if the work had to wait. */
  runAuthorized<T>(
    caller: QueuedCaller & { reauthorize(): Promise<void> },
    workspaceId: string,
    work: () => Promise<T>,
  ): Promise<T> {
    return this.run(caller, workspaceId, async hasWaited => {
      if (hasWaited) await caller.reauthorize()
      return work()
    })
  }
}
