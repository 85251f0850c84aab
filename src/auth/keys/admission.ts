import { availableParallelism } from 'node:os'
import { Lane, type LaneLimits } from './lane.ts'

export interface AdmissionLimits {
  /** How much work runs at once. */
  readonly atOnce: number
  /** Tokens that bear the mark of this store; only whoever was given one has such a token. */
  readonly marked: LaneLimits
  /** Every other token. */
  readonly unmarked: LaneLimits
  /** Tokens that are being made. */
  readonly mints: LaneLimits
}

/** Whose turn a piece of work takes, and among which others. */
export interface Turn {
  readonly lane: Exclude<keyof AdmissionLimits, 'atOnce'>
  readonly client: string
}

/** At most half the cores, so that the other half answers who is known already. */
const defaults: AdmissionLimits = {
  atOnce: Math.max(1, Math.floor(availableParallelism() / 2)),
  marked: { waitingMax: 512, waitingPerClientMax: 64 },
  unmarked: { waitingMax: 512, waitingPerClientMax: 16 },
  mints: { waitingMax: 512, waitingPerClientMax: 64 },
}

/**
 * Takes turns among clients: however much one of them asks for, each other waits for one piece of its work a round.
 * Marked tokens come before unmarked ones. Checking tokens and making them take turns, so that neither stops the other.
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
   * Do a piece of work when its turn has come.
   *
   * @throws rate_limited  too much of this client waits, or in its lane too much from too many of them
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

  /** Hand the place that became free to whose turn it is. */
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
