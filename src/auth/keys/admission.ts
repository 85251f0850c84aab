import { availableParallelism } from 'node:os'
import { WbError } from '../../contract/errors.ts'

export interface AdmissionLimits {
  /** How much work runs at once. */
  readonly atOnce: number
  /** How much waits for its turn. */
  readonly waitingMax: number
  /** How much of one client waits for its turn. */
  readonly waitingPerClientMax: number
}

/** At most half the cores, so that the other half answers who is known already. */
const defaults: AdmissionLimits = {
  atOnce: Math.max(1, Math.floor(availableParallelism() / 2)),
  waitingMax: 512,
  waitingPerClientMax: 16,
}

const retryAfterSeconds = 1

interface Waiting {
  readonly begin: () => void
  readonly refuse: (error: WbError) => void
}

/**
 * Takes turns among clients: however much one of them asks for, each other waits for one piece of its work a round.
 *
 * @see security decision 10
 */
export class Admission {
  readonly #limits: AdmissionLimits
  /** Clients in the order of their turns; none without something that waits. */
  readonly #queues = new Map<string, Waiting[]>()
  #running = 0
  #waiting = 0

  constructor(limits: Partial<AdmissionLimits> = {}) {
    this.#limits = { ...defaults, ...limits }
  }

  /**
   * Do a piece of work when its turn has come.
   *
   * @param client  whose turn it takes
   * @throws rate_limited  too much of this client waits, or everywhere too much from too many of them
   */
  async run<T>(client: string, work: () => Promise<T>): Promise<T> {
    if (this.#running < this.#limits.atOnce) this.#running++
    else await this.#turn(client)
    try {
      return await work()
    } finally {
      this.#next()
    }
  }

  #turn(client: string): Promise<void> {
    return new Promise((begin, refuse) => {
      const own = this.#queues.get(client) ?? []
      if (own.length >= this.#limits.waitingPerClientMax) throw tooMuch()
      if (this.#waiting >= this.#limits.waitingMax && !this.#displace(own.length + 1)) throw tooMuch()
      own.push({ begin, refuse })
      this.#queues.set(client, own)
      this.#waiting++
    })
  }

  /** The client with the most waiting loses the last of it, if that is more than the newcomer would have. */
  #displace(newcomers: number): boolean {
    let longest: Waiting[] = []
    for (const queue of this.#queues.values()) if (queue.length > longest.length) longest = queue
    if (longest.length <= newcomers) return false
    longest.pop()!.refuse(tooMuch())
    this.#waiting--
    return true
  }

  /** Hand the place that became free to whose turn it is; a client with more goes to the end of the round. */
  #next(): void {
    const [turn] = this.#queues
    if (!turn) {
      this.#running--
      return
    }
    const [client, [first, ...others]] = turn
    this.#queues.delete(client)
    if (others.length > 0) this.#queues.set(client, others)
    this.#waiting--
    first!.begin()
  }
}

function tooMuch(): WbError {
  return new WbError('rate_limited', 'too many credentials wait for their turn', {
    headers: { 'retry-after': String(retryAfterSeconds) },
  })
}
