import { FairQueue } from './fair-queue.ts'

/** Identifies the caller of a task. Workspaces take turns, and so do the callers of a workspace. */
export interface QueueTurn {
  readonly workspaceId: string
  /** Distinguishes the callers of a workspace. */
  readonly member: string
  /** Removes the task if it has not started. */
  readonly signal?: AbortSignal
}

/**
 * Limits the tasks that run at the same time. Waiting tasks start in the order of a {@link FairQueue}. Some places more are only for
 * workspaces without a running task, so that slow tasks of one workspace do not delay those of others.
 */
export class FairLimiter {
  readonly #waiting = new FairQueue<() => void>()
  /** Number of running tasks by workspace. */
  readonly #runningBy = new Map<string, number>()
  #running = 0

  /** @param extraMax  number of places for workspaces without a running task */
  constructor(
    private readonly runningMax: number,
    private readonly extraMax = 0,
  ) {}

  /** Returns the number of waiting tasks of a member. */
  countWaiting(workspaceId: string, member: string): number {
    return this.#waiting.count(workspaceId, member)
  }

  /**
   * Runs a task when it is the turn of its member. The task must not use the limiter itself.
   *
   * @param task  gets true if it had to wait
   * @throws the reason of the signal, if it aborts before the task starts
   */
  async run<T>(
    { workspaceId, member, signal }: QueueTurn,
    task: (hasWaited: boolean) => Promise<T>,
  ): Promise<T> {
    signal?.throwIfAborted()
    const hasWaited = !this.#canStart(workspaceId)
    if (hasWaited) await this.#wait(workspaceId, member, signal)
    else this.#count(workspaceId, 1)
    try {
      return await task(hasWaited)
    } finally {
      this.#count(workspaceId, -1)
      this.#waiting.take(id => this.#canStart(id))?.()
    }
  }

  #canStart(workspaceId: string): boolean {
    if (this.#running < this.runningMax) return true
    return this.#running < this.runningMax + this.extraMax && !this.#runningBy.has(workspaceId)
  }

  #count(workspaceId: string, change: 1 | -1): void {
    this.#running += change
    const running = (this.#runningBy.get(workspaceId) ?? 0) + change
    if (running === 0) this.#runningBy.delete(workspaceId)
    else this.#runningBy.set(workspaceId, running)
  }

  /** Resolves when an ended task has made room, and this one counts as running. */
  #wait(workspaceId: string, member: string, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const start = () => {
        signal?.removeEventListener('abort', drop)
        this.#count(workspaceId, 1)
        resolve()
      }
      const drop = () => {
        this.#waiting.delete(workspaceId, member, start)
        reject(signal?.reason)
      }
      this.#waiting.add(workspaceId, member, start)
      signal?.addEventListener('abort', drop, { once: true })
    })
  }
}
