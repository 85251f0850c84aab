import { FairQueue } from './fair-queue.ts'

/** Limits the tasks that run at the same time. Waiting tasks start in the order of a {@link FairQueue}. */
export class FairLimiter {
  readonly #waiting = new FairQueue<() => void>()
  #running = 0

  constructor(private readonly runningMax: number) {}

  /** Returns the number of waiting tasks of a member. */
  countWaiting(workspaceId: string, member: string): number {
    return this.#waiting.count(workspaceId, member)
  }

  /**
   * Runs a task when it is the turn of its member. The task must not use the limiter itself.
   *
   * @param task    gets true if it had to wait
   * @param signal  removes the task if it has not started
   * @throws the reason of the signal, if it aborts before the task starts
   */
  async run<T>(
    { workspaceId, member, signal }: { workspaceId: string; member: string; signal: AbortSignal },
    task: (hasWaited: boolean) => Promise<T>,
  ): Promise<T> {
    signal.throwIfAborted()
    const hasWaited = this.#running >= this.runningMax
    if (hasWaited) await this.#wait(workspaceId, member, signal)
    else this.#running++
    try {
      return await task(hasWaited)
    } finally {
      const startNext = this.#waiting.take()
      if (startNext) startNext()
      else this.#running--
    }
  }

  /** Resolves when an ended task has passed its place on. */
  #wait(workspaceId: string, member: string, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const start = () => {
        signal.removeEventListener('abort', drop)
        resolve()
      }
      const drop = () => {
        this.#waiting.delete(workspaceId, member, start)
        reject(signal.reason)
      }
      this.#waiting.add(workspaceId, member, start)
      signal.addEventListener('abort', drop, { once: true })
    })
  }
}
