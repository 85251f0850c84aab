import { WbError } from '../../contract/errors.ts'

export interface LaneLimits {
  /** How much work waits for its turn. */
  readonly waitingMax: number
  /** How much work of one client waits for its turn. */
  readonly waitingPerClientMax: number
}

const retryAfterSeconds = 1

interface Waiting {
  readonly begin: () => void
  readonly refuse: (error: WbError) => void
}

/** A queue with turns among clients: each waits for one piece of work a round of every other. */
export class Lane {
  /** Clients in the order of their turns; none without something that waits. */
  readonly #queues = new Map<string, Waiting[]>()
  #waiting = 0

  constructor(private readonly limits: LaneLimits) {}

  /**
   * Wait for a turn.
   *
   * @throws rate_limited  too much of this client waits, or everywhere too much from too many of them
   */
  turn(client: string): Promise<void> {
    return new Promise((begin, refuse) => {
      const own = this.#queues.get(client) ?? []
      if (own.length >= this.limits.waitingPerClientMax) throw tooMuch()
      if (this.#waiting >= this.limits.waitingMax && !this.#displace(own.length + 1)) throw tooMuch()
      own.push({ begin, refuse })
      this.#queues.set(client, own)
      this.#waiting++
    })
  }

  /**
   * Let the next one begin; its client goes to the end of the round if it has more.
   *
   * @returns false when none waits
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

  /** The client with the most waiting loses the last of it, if that is more than the newcomer would have. */
  #displace(newcomers: number): boolean {
    let longest: Waiting[] = []
    for (const queue of this.#queues.values()) if (queue.length > longest.length) longest = queue
    if (longest.length <= newcomers) return false
    longest.pop()!.refuse(tooMuch())
    this.#waiting--
    return true
  }
}

function tooMuch(): WbError {
  return new WbError('rate_limited', 'too many credentials wait for their turn', {
    headers: { 'retry-after': String(retryAfterSeconds) },
  })
}
