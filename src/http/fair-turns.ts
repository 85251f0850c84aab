import type { IncomingMessage } from 'node:http'

/**
 * Owner of queued work. Turns rotate between addresses first, then between the credentials at one address.
 */
export interface TurnOwner {
  readonly address: string
  /** Credential as sent, not yet verified; empty if absent. */
  readonly credential: string
}

/**
 * Time in milliseconds after which no further work starts in a turn. Started work runs until its next
 * `await`.
 */
const turnMsMax = 4

/**
 * Number of turns that start no work after a turn that took too long, while connections keep arriving. Node
 * accepts one connection per turn: without these turns, a new connection behind a thousand others would wait
 * for a thousand long turns.
 */
const restTurns = 16

interface WaitingWork {
  readonly cost: number
  readonly start: () => void
}

/**
 * Spreads a burst of work over turns of the event loop. Queued work starts round-robin, first by address and
 * then by credential, so a flood from one caller delays others by milliseconds only.
 */
export class FairTurns {
  readonly #costPerTurn: number
  readonly #accepted: () => number
  readonly #waiting = new Map<string, Map<string, WaitingWork[]>>()
  #costLeft: number
  #msLeft = turnMsMax
  #isTurnPlanned = false
  #restsLeft = 0
  #lastAccepted = 0
  /** Start of the last turn; undefined if that turn started no work. */
  #busySince: number | undefined

  /**
   * @param costPerTurn  total cost of the work that may start in one turn
   * @param accepted     returns the number of connections that the server has accepted so far
   */
  constructor(costPerTurn: number, accepted: () => number) {
    this.#costPerTurn = costPerTurn
    this.#accepted = accepted
    this.#costLeft = costPerTurn
  }

  /** Calls `start` at once if this turn has capacity left, otherwise in a later turn. */
  run({ address, credential }: TurnOwner, start: () => void, cost = 1): void {
    this.#planTurn()
    if (this.#hasRoom()) {
      this.#begin({ cost, start })
      return
    }
    const credentials = getOrCreate(this.#waiting, address, () => new Map<string, WaitingWork[]>())
    getOrCreate(credentials, credential, () => []).push({ cost, start })
  }

  #begin({ cost, start }: WaitingWork): void {
    const startedAt = performance.now()
    this.#costLeft -= cost
    start()
    this.#msLeft -= performance.now() - startedAt
  }

  #hasRoom(): boolean {
    return this.#costLeft > 0 && this.#msLeft > 0
  }

  #planTurn(): void {
    if (this.#isTurnPlanned) return
    this.#isTurnPlanned = true
    setImmediate(() => this.#takeTurn())
  }

  #takeTurn(): void {
    this.#isTurnPlanned = false
    const now = performance.now()
    if (this.#busySince !== undefined && now - this.#busySince > turnMsMax) this.#restsLeft = restTurns
    this.#busySince = undefined
    const accepted = this.#accepted()
    if (accepted === this.#lastAccepted) this.#restsLeft = 0
    this.#lastAccepted = accepted
    if (this.#restsLeft > 0) {
      this.#restsLeft--
      this.#costLeft = 0
    } else {
      this.#costLeft = this.#costPerTurn
      this.#msLeft = turnMsMax
      while (this.#hasRoom() && this.#waiting.size > 0) this.#begin(this.#next())
      this.#busySince = now
    }
    if (this.#waiting.size > 0) this.#planTurn()
  }

  #next(): WaitingWork {
    const [address, credentials] = takeFirst(this.#waiting)
    const [credential, waiting] = takeFirst(credentials)
    const next = waiting.shift()!
    // A map iterates in insertion order: inserting an entry again moves it to the end of the round.
    if (waiting.length > 0) credentials.set(credential, waiting)
    if (credentials.size > 0) this.#waiting.set(address, credentials)
    return next
  }
}

export function turnOwner({ socket, headers }: IncomingMessage): TurnOwner {
  return { address: socket.remoteAddress ?? '', credential: headers.authorization ?? headers.cookie ?? '' }
}

function getOrCreate<K, V>(map: Map<K, V>, key: K, create: () => V): V {
  const value = map.get(key) ?? create()
  map.set(key, value)
  return value
}

/** Removes the entry that was inserted first. The map must not be empty. */
function takeFirst<K, V>(map: Map<K, V>): [K, V] {
  const [key, value] = map.entries().next().value!
  map.delete(key)
  return [key, value]
}
