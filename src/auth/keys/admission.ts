import { availableParallelism } from 'node:os'
import { FairQueue, type FairQueueLimits } from './fair-queue.ts'

export interface AdmissionLimits {
  /** Maximum number of tasks that run at the same time. */
  readonly runningMax: number
  /** Limits for tokens with the mark of this store, which only its issued tokens have. */
  readonly marked: FairQueueLimits
  /** Limits for all other tokens. */
  readonly unmarked: FairQueueLimits
  /** Limits for the creation of tokens. */
  readonly creations: FairQueueLimits
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
    return this.#queues.marked.startNext() || this.#queues.unmarked.startNext()
  }

  #startCreation(): boolean {
    return this.#queues.creations.startNext()
  }
}
