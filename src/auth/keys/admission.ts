import { availableParallelism } from 'node:os'
import { WbError } from '../../contract/errors.ts'

export interface QueueLimits {
  /** Maximum number of tasks in the queue. */
  readonly waitingMax: number
  /** Maximum number of tasks of one client in the queue. */
  readonly waitingPerClientMax: number
}

export interface AdmissionLimits {
  /** Maximum number of tasks that run at the same time. */
  readonly runningMax: number
  /** Limits for tokens with the mark of this store, which only its issued tokens have. */
  readonly marked: QueueLimits
  /** Limits for all other tokens. */
  readonly unmarked: QueueLimits
  /** Limits for the creation of tokens. */
  readonly creations: QueueLimits
}

/** Queue and client of a task. */
export interface AdmissionTask {
  readonly queue: Exclude<keyof AdmissionLimits, 'runningMax'>
  readonly client: string
}

/** Default limits. Work uses at most half the cores, so the other half can answer verified callers. */
const defaults: AdmissionLimits = {
  runningMax: Math.max(1, Math.floor(availableParallelism() / 2)),
  marked: { waitingMax: 512, waitingPerClientMax: 64 },
  unmarked: { waitingMax: 512, waitingPerClientMax: 16 },
  creations: { waitingMax: 512, waitingPerClientMax: 64 },
}

/**
 * Schedules expensive work fairly: in each round, every waiting client gets one task, no matter how many
 * tasks another client queues. Marked tokens come before unmarked ones. Verifying and creating tokens
 * alternate, so neither blocks the other.
 *
 * @see docs/security.md#rule-10
 */
export class Admission {
  readonly #runningMax: number
  readonly #queues: Readonly<Record<AdmissionTask['queue'], FairQueue>>
  #running = 0
  #isCreationNext = false

  constructor(limits: Partial<AdmissionLimits> = {}) {
    const { runningMax, marked, unmarked, creations } = { ...defaults, ...limits }
    this.#runningMax = runningMax
    this.#queues = {
      marked: new FairQueue(marked),
      unmarked: new FairQueue(unmarked),
      creations: new FairQueue(creations),
    }
  }

  /**
   * Runs a task when its turn has come.
   *
   * @throws rate_limited  when too many tasks wait, of this client or in the queue
   */
  async run<T>({ queue, client }: AdmissionTask, work: () => Promise<T>): Promise<T> {
    if (this.#running < this.#runningMax) this.#running++
    else await this.#queues[queue].waitForTurn(client)
    try {
      return await work()
    } finally {
      if (!this.#startNext()) this.#running--
    }
  }

  /** Starts the next waiting task in a free slot. Returns false if none waits. */
  #startNext(): boolean {
    const isCreationNext = this.#isCreationNext
    this.#isCreationNext = !isCreationNext
    return isCreationNext
      ? this.#startCreation() || this.#startCheck()
      : this.#startCheck() || this.#startCreation()
  }

  #startCheck(): boolean {
    return this.#queues.marked.next() || this.#queues.unmarked.next()
  }

  #startCreation(): boolean {
    return this.#queues.creations.next()
  }
}

const retryAfterSeconds = 1

interface Waiting {
  readonly begin: () => void
  readonly refuse: (error: WbError) => void
}

/** A fair queue: each round starts one task of every waiting client. */
class FairQueue {
  /** Tasks by client, in the order of turns. Clients without waiting tasks are removed. */
  readonly #queues = new Map<string, Waiting[]>()
  #waiting = 0

  constructor(private readonly limits: QueueLimits) {}

  /**
   * Waits for a turn.
   *
   * @throws rate_limited  when too many tasks wait, of this client or in total
   */
  waitForTurn(client: string): Promise<void> {
    return new Promise((begin, refuse) => {
      const own = this.#queues.get(client) ?? []
      if (own.length >= this.limits.waitingPerClientMax) throw tooManyTasks()
      if (this.#waiting >= this.limits.waitingMax && !this.#evictForNewcomer(own.length + 1))
        throw tooManyTasks()
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
  next(): boolean {
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
  #evictForNewcomer(newcomers: number): boolean {
    let longest: Waiting[] = []
    for (const queue of this.#queues.values()) if (queue.length > longest.length) longest = queue
    if (longest.length <= newcomers) return false
    longest.pop()!.refuse(tooManyTasks())
    this.#waiting--
    return true
  }
}

function tooManyTasks(): WbError {
  return new WbError('rate_limited', 'too many credentials are waiting to be verified', {
    headers: { 'retry-after': String(retryAfterSeconds) },
  })
}
