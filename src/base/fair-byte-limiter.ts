import { FairQueue } from './fair-queue.ts'

interface WaitingTask {
  readonly workspaceId: string
  readonly bytes: number
  readonly start: () => void
}

/**
 * Limits the total size of the tasks that run at the same time. Waiting tasks start in the order of a {@link FairQueue}: a large
 * task waits until there is room for it, and no later task overtakes it. A workspace starts no task while its running ones use half
 * of the total size, so that tasks that take long leave room for other workspaces. A quarter more is only for small tasks of
 * workspaces without a running task, which then overtake a large task that waits for room.
 */
export class FairByteLimiter {
  readonly #waiting = new FairQueue<WaitingTask>()
  /** Task that starts as soon as there is room for it. */
  #next: WaitingTask | undefined
  #usedBytes = 0
  /** Size of the running tasks by workspace. */
  readonly #usedBy = new Map<string, number>()

  constructor(private readonly bytesMax: number) {}

  /**
   * Runs a task when there is room for it and it is the turn of its workspace. The task must not use the limiter itself.
   *
   * @param bytes   size of the task; a larger one than the limit runs alone
   * @param signal  removes the task if it has not started
   * @throws the reason of the signal, if it aborts before the task starts
   */
  async run<T>(
    { workspaceId, bytes, signal }: { workspaceId: string; bytes: number; signal: AbortSignal },
    task: () => Promise<T>,
  ): Promise<T> {
    signal.throwIfAborted()
    const usedBytes = Math.min(bytes, this.bytesMax)
    await this.#wait(workspaceId, usedBytes, signal)
    try {
      return await task()
    } finally {
      this.#count(workspaceId, -usedBytes)
      this.#startNext()
    }
  }

  #wait(workspaceId: string, bytes: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const start = () => {
        signal.removeEventListener('abort', drop)
        resolve()
      }
      const waiting = { workspaceId, bytes, start }
      const drop = () => {
        if (this.#next === waiting) this.#next = undefined
        else this.#waiting.delete(workspaceId, '', waiting)
        reject(signal.reason)
        this.#startNext()
      }
      signal.addEventListener('abort', drop, { once: true })
      this.#waiting.add(workspaceId, '', waiting)
      this.#startNext()
    })
  }

  #startNext(): void {
    for (;;) {
      this.#next ??= this.#waiting.take(workspaceId => this.#hasRoomFor(workspaceId))
      const fits = this.#next && this.#usedBytes + this.#next.bytes <= this.bytesMax
      const task = fits ? this.#next : this.#waiting.take((_, task) => this.#fitsReserve(task))
      if (!task) return
      if (fits) this.#next = undefined
      this.#count(task.workspaceId, task.bytes)
      task.start()
    }
  }

  #hasRoomFor(workspaceId: string): boolean {
    return (this.#usedBy.get(workspaceId) ?? 0) < this.bytesMax / 2
  }

  #fitsReserve({ workspaceId, bytes }: WaitingTask): boolean {
    const reserve = this.bytesMax / 4
    return (
      !this.#usedBy.has(workspaceId) && bytes <= reserve && this.#usedBytes + bytes <= this.bytesMax + reserve
    )
  }

  #count(workspaceId: string, bytes: number): void {
    this.#usedBytes += bytes
    const used = (this.#usedBy.get(workspaceId) ?? 0) + bytes
    if (used === 0) this.#usedBy.delete(workspaceId)
    else this.#usedBy.set(workspaceId, used)
  }
}
