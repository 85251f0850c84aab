import { WbError } from '../../contract/errors.ts'

export interface FairQueueLimits {
  /** Maximum number of tasks in the queue. */
  readonly waitingMax: number
  /** Maximum number of tasks of one client in the queue. */
  readonly waitingPerClientMax: number
}

const retryAfterSeconds = 1

interface WaitingTask {
  readonly begin: () => void
  readonly refuse: (error: WbError) => void
}

/** A fair queue: each round starts one task of every waiting client. */
export class FairQueue {
  /** Tasks by client, in the order of turns. Clients without waiting tasks are removed. */
  readonly #queues = new Map<string, WaitingTask[]>()
  #waiting = 0

  constructor(private readonly limits: FairQueueLimits) {}

  /**
   * Waits for a turn.
   *
   * @throws rate_limited  when too many tasks wait, of this client or in total
   */
  waitForTurn(client: string): Promise<void> {
    return new Promise((begin, refuse) => {
      const own = this.#queues.get(client) ?? []
      if (own.length >= this.limits.waitingPerClientMax) throw queueFull()
      if (this.#waiting >= this.limits.waitingMax && !this.#displace(own.length + 1)) throw queueFull()
      own.push({ begin, refuse })
      this.#queues.set(client, own)
      this.#waiting++
    })
  }

  /**
   * Starts the next task. Its client moves to the end of the round if it has more.
   *
   * @returns false if no task waits
   */
  startNext(): boolean {
    const [turn] = this.#queues
    if (!turn) return false
    const [client, [first, ...others]] = turn
    this.#queues.delete(client)
    if (others.length > 0) this.#queues.set(client, others)
    this.#waiting--
    first!.begin()
    return true
  }

  /**
   * Removes the last task of the client with the most tasks, if that client has more than the new one would
   * have. Returns false if no task was removed.
   */
  #displace(newcomers: number): boolean {
    let longest: WaitingTask[] = []
    for (const queue of this.#queues.values()) if (queue.length > longest.length) longest = queue
    if (longest.length <= newcomers) return false
    longest.pop()!.refuse(queueFull())
    this.#waiting--
    return true
  }
}

function queueFull(): WbError {
  return new WbError('rate_limited', 'too many credentials wait for their turn', {
    headers: { 'retry-after': String(retryAfterSeconds) },
  })
}
