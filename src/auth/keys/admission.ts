import { availableParallelism } from 'node:os'
import { Lane, type LaneLimits } from './lane.ts'

export interface AdmissionLimits {
  /** Maximum number of tasks that run at the same time. */
  readonly atOnce: number
  /** Limits for tokens with the mark of this store, which only its issued tokens have. */
  readonly marked: LaneLimits
  /** Limits for all other tokens. */
  readonly unmarked: LaneLimits
  /** Limits for the creation of tokens. */
  readonly mints: LaneLimits
}

/** Queue and client of a task. */
export interface Turn {
  readonly lane: Exclude<keyof AdmissionLimits, 'atOnce'>
  readonly client: string
}

/** Default limits. Work uses at most half the cores, so the other half can answer verified callers. */
const defaults: AdmissionLimits = {
  atOnce: Math.max(1, Math.floor(availableParallelism() / 2)),
  marked: { waitingMax: 512, waitingPerClientMax: 64 },
  unmarked: { waitingMax: 512, waitingPerClientMax: 16 },
  mints: { waitingMax: 512, waitingPerClientMax: 64 },
}

/**
 * Schedules expensive work fairly: in each round, every waiting client gets one task, no matter how many
 * tasks another client queues. Marked tokens come before unmarked ones. Verifying and creating tokens
 * alternate, so neither blocks the other.
 *
 * @see docs/security.md#rule-10
 */
export class Admission {
  readonly #atOnce: number
  readonly #lanes: Readonly<Record<Turn['lane'], Lane>>
  #running = 0
  #isMintNext = false

  constructor(limits: Partial<AdmissionLimits> = {}) {
    const { atOnce, marked, unmarked, mints } = { ...defaults, ...limits }
    this.#atOnce = atOnce
    this.#lanes = { marked: new Lane(marked), unmarked: new Lane(unmarked), mints: new Lane(mints) }
  }

  /**
   * Runs a task when its turn has come.
   *
   * @throws rate_limited  when too many tasks wait, of this client or in the queue
   */
  async run<T>({ lane, client }: Turn, work: () => Promise<T>): Promise<T> {
    if (this.#running < this.#atOnce) this.#running++
    else await this.#lanes[lane].turn(client)
    try {
      return await work()
    } finally {
      if (!this.#next()) this.#running--
    }
  }

  /** Starts the next waiting task in a free slot. Returns false if none waits. */
  #next(): boolean {
    const isMintNext = this.#isMintNext
    this.#isMintNext = !isMintNext
    return isMintNext ? this.#mint() || this.#check() : this.#check() || this.#mint()
  }

  #check(): boolean {
    return this.#lanes.marked.next() || this.#lanes.unmarked.next()
  }

  #mint(): boolean {
    return this.#lanes.mints.next()
  }
}
