import type { IncomingMessage } from 'node:http'

/**
 * Owner of queued work. The scheduler alternates between addresses first, then between the credentials at one
 * address.
 */
export interface WorkOwner {
  readonly address: string
  /** Credential from the request, not verified; empty if absent. */
  readonly credential: string
}

/**
 * Time in milliseconds after which no more work starts in an event loop tick. Work that has started continues until
 * its next `await`.
 */
const tickMsMax = 4

/**
 * Number of ticks to skip after a tick that took too long, while new connections arrive. No work starts in a skipped tick.
 * Node accepts one connection per tick, so without the pauses a new connection behind a thousand others would wait for a
 * thousand long ticks.
 */
const pauseTicks = 16

interface WaitingWork {
  readonly cost: number
  readonly start: () => void
}

/**
 * Spreads a burst of work over several event loop ticks. Queued work starts round-robin, first by address and
 * then by credential, so a flood of requests from one caller delays other callers by only a few milliseconds.
 */
export class FairScheduler {
  readonly #costPerTick: number
  readonly #countAccepted: () => number
  readonly #waiting = new Map<string, Map<string, WaitingWork[]>>()
  #costLeft: number
  #msLeft = tickMsMax
  #isTickScheduled = false
  #pausesLeft = 0
  #lastAccepted = 0
  /** Start of the last tick, in milliseconds; undefined if it was skipped. */
  #busySince: number | undefined

  /**
   * @param costPerTick    total cost of the work that may start in one tick
   * @param countAccepted  returns the number of connections that the server has accepted so far
   */
  constructor(costPerTick: number, countAccepted: () => number) {
    this.#costPerTick = costPerTick
    this.#countAccepted = countAccepted
    this.#costLeft = costPerTick
  }

  /** Calls `start` at once if the current tick has capacity left, otherwise in a later tick. */
  run({ address, credential }: WorkOwner, start: () => void, cost = 1): void {
    this.#scheduleTick()
    if (this.#hasCapacity()) {
      this.#start({ cost, start })
      return
    }
    const credentials = getOrCreate(this.#waiting, address, () => new Map<string, WaitingWork[]>())
    getOrCreate(credentials, credential, () => []).push({ cost, start })
  }

  #start({ cost, start }: WaitingWork): void {
    const startedAt = performance.now()
    this.#costLeft -= cost
    start()
    this.#msLeft -= performance.now() - startedAt
  }

  #hasCapacity(): boolean {
    return this.#costLeft > 0 && this.#msLeft > 0
  }

  #scheduleTick(): void {
    if (this.#isTickScheduled) return
    this.#isTickScheduled = true
    setImmediate(() => this.#runTick())
  }

  #runTick(): void {
    this.#isTickScheduled = false
    const now = performance.now()
    if (this.#busySince !== undefined && now - this.#busySince > tickMsMax) this.#pausesLeft = pauseTicks
    this.#busySince = undefined
    const acceptedCount = this.#countAccepted()
    if (acceptedCount === this.#lastAccepted) this.#pausesLeft = 0
    this.#lastAccepted = acceptedCount
    if (this.#pausesLeft > 0) {
      this.#pausesLeft--
      this.#costLeft = 0
    } else {
      this.#costLeft = this.#costPerTick
      this.#msLeft = tickMsMax
      while (this.#hasCapacity() && this.#waiting.size > 0) this.#start(this.#next())
      this.#busySince = now
    }
    if (this.#waiting.size > 0) this.#scheduleTick()
  }

  #next(): WaitingWork {
    const [address, credentials] = takeFirst(this.#waiting)
    const [credential, waiting] = takeFirst(credentials)
    const next = waiting.shift()!
    // A map iterates in insertion order, so inserting an entry again moves it to the end.
    if (waiting.length > 0) credentials.set(credential, waiting)
    if (credentials.size > 0) this.#waiting.set(address, credentials)
    return next
  }
}

export function workOwner({ socket, headers }: IncomingMessage): WorkOwner {
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
