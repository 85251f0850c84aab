import { availableParallelism } from 'node:os'
import { WbError } from '../../contract/errors.ts'

export interface QueueLimits {
  /** Maximum number of tasks in the queue. */
  readonly waitingMax: number
  /** Maximum number of tasks in the queue that belong to the same client. */
  readonly waitingPerClientMax: number
}

export interface AdmissionLimits {
  /** Maximum number of tasks that run at the same time. */
  readonly runningMax: number
  /** Limits for the verification of tokens with a valid checksum. Only tokens that this store issued have one. */
  readonly withChecksum: QueueLimits
  /** Limits for the verification of all other tokens. */
  readonly withoutChecksum: QueueLimits
  /** Limits for the creation of tokens. */
  readonly creations: QueueLimits
}

/** Queue and client of a task. */
export interface AdmissionTask {
  readonly queue: Exclude<keyof AdmissionLimits, 'runningMax'>
  readonly client: string
}

/** Default limits. Tasks use at most half of the cores, so that the other half can serve verified callers. */
const defaults: AdmissionLimits = {
  runningMax: Math.max(1, Math.floor(availableParallelism() / 2)),
  withChecksum: { waitingMax: 512, waitingPerClientMax: 64 },
  withoutChecksum: { waitingMax: 512, waitingPerClientMax: 16 },
  creations: { waitingMax: 512, waitingPerClientMax: 64 },
}

/**
 * Schedules expensive tasks fairly: each round runs one task of every waiting client, regardless of how many tasks
 * other clients have queued. Tokens with a valid checksum are verified before all others. Verifications and creations
 * alternate, so neither can block the other.
 *
 * @see docs/security.md#rule-10
 */
export class Admission {
  readonly #runningMax: number
  readonly #queues: Readonly<Record<AdmissionTask['queue'], FairQueue>>
  #running = 0
  #isCreationNext = false

  constructor(limits: Partial<AdmissionLimits> = {}) {
    const { runningMax, withChecksum, withoutChecksum, creations } = { ...defaults, ...limits }
    this.#runningMax = runningMax
    this.#queues = {
      withChecksum: new FairQueue(withChecksum),
      withoutChecksum: new FairQueue(withoutChecksum),
      creations: new FairQueue(creations),
    }
  }

  /**
   * Runs a task after waiting for a free slot.
   *
   * @throws rate_limited  when too many tasks of this client, or too many tasks in the queue, are waiting
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

  /** Starts the next waiting task in a free slot. Returns false if no task is waiting. */
  #startNext(): boolean {
    const isCreationNext = this.#isCreationNext
    this.#isCreationNext = !isCreationNext
    return isCreationNext
      ? this.#startCreation() || this.#startVerification()
      : this.#startVerification() || this.#startCreation()
  }

  #startVerification(): boolean {
    return this.#queues.withChecksum.startNext() || this.#queues.withoutChecksum.startNext()
  }

  #startCreation(): boolean {
    return this.#queues.creations.startNext()
  }
}

const retryAfterSeconds = 1

interface WaitingTask {
  readonly start: () => void
  readonly reject: (error: WbError) => void
}

/** A fair queue: each round starts one task of every waiting client. */
class FairQueue {
  /** Tasks by client, in the order of the current round. Clients without waiting tasks are removed. */
  readonly #queues = new Map<string, WaitingTask[]>()
  #waiting = 0

  constructor(private readonly limits: QueueLimits) {}

  /**
   * Waits until the task of a client may start.
   *
   * @throws rate_limited  when too many tasks of this client, or too many tasks in total, are waiting
   */
  waitForTurn(client: string): Promise<void> {
    return new Promise((start, reject) => {
      const clientTasks = this.#queues.get(client) ?? []
      if (clientTasks.length >= this.limits.waitingPerClientMax) throw tooManyTasks()
      if (this.#waiting >= this.limits.waitingMax && !this.#evictForNewcomer(clientTasks.length + 1))
        throw tooManyTasks()
      clientTasks.push({ start, reject })
      this.#queues.set(client, clientTasks)
      this.#waiting++
    })
  }

  /**
   * Starts the next task. If its client has more tasks, the client moves to the end of the order.
   *
   * @returns false if no task is waiting
   */
  startNext(): boolean {
    const [nextClient] = this.#queues
    if (!nextClient) return false
    const [client, [first, ...others]] = nextClient
    this.#queues.delete(client)
    if (others.length > 0) this.#queues.set(client, others)
    this.#waiting--
    first!.start()
    return true
  }

  /**
   * Rejects the last task of the client with the most tasks, if that client has more than `newcomerTasks` tasks.
   * Returns false if no task was rejected.
   */
  #evictForNewcomer(newcomerTasks: number): boolean {
    let longest: WaitingTask[] = []
    for (const queue of this.#queues.values()) if (queue.length > longest.length) longest = queue
    if (longest.length <= newcomerTasks) return false
    longest.pop()!.reject(tooManyTasks())
    this.#waiting--
    return true
  }
}

function tooManyTasks(): WbError {
  return new WbError('rate_limited', 'too many credentials are waiting to be verified or created', {
    headers: { 'retry-after': String(retryAfterSeconds) },
  })
}
