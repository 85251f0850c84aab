import { FairLimiter, type QueueTurn } from './fair-limiter.ts'
import type { OperationHost, ThreadOperations } from './threads.ts'

/** Threads that each run one call at a time, so a call that ends its thread fails alone. Waiting callers take turns. */
export class FairThreads<O extends ThreadOperations> {
  readonly #limiter: FairLimiter
  readonly #hosts: readonly OperationHost<O>[]
  readonly #idle: OperationHost<O>[]

  /**
   * @param threads       number of threads
   * @param extraThreads  number of threads for workspaces without a running call
   */
  constructor(
    { threads, extraThreads }: { threads: number; extraThreads: number },
    open: () => OperationHost<O>,
  ) {
    this.#limiter = new FairLimiter(threads, extraThreads)
    this.#hosts = Array.from({ length: threads + extraThreads }, open)
    this.#idle = [...this.#hosts]
  }

  /** Runs one call. @throws the reason of the signal, if it aborts before the call starts */
  run<T>(turn: QueueTurn, call: (host: OperationHost<O>) => Promise<T>): Promise<T> {
    return this.#limiter.run(turn, async () => {
      const host = this.#idle.pop()!
      try {
        return await call(host)
      } finally {
        this.#idle.push(host)
      }
    })
  }

  /** Ends the threads after their running calls. */
  async close(): Promise<void> {
    await Promise.all(this.#hosts.map(host => host.close()))
  }
}
