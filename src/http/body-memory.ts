import { WbError } from '../contract/errors.ts'

/** Bodies up to this size in bytes have a separate budget, so large ones never make a search or a sign-in fail. */
export const smallBodyBytes = 131_072

/** Share of the budget for large bodies that small ones get in addition. */
const smallShare = 1 / 8

const retryAfterSeconds = 1

export interface BodyMemoryLimits {
  /** Bytes of large bodies that the process holds at once. */
  readonly totalBytes: number
  /** Bytes of them that one caller holds at once. */
  readonly perCallerBytes: number
}

/** Owner of a body. Verified subjects never compete with strangers for the memory of small bodies. */
export interface BodyOwner {
  readonly caller: string
  readonly isVerified: boolean
}

/** The memory that one request holds for bodies. */
export interface BodyHold {
  /** True while more than {@link smallBodyBytes} are held. */
  readonly isLarge: boolean
  /**
   * Changes how many bytes are held in all.
   *
   * @throws overloaded  the budget of the caller or of the process is spent; what was held stays held
   */
  resize(bytes: number): void
  /** Holds bytes that exist already, whatever the budget says. */
  force(bytes: number): void
  release(): void
}

/** A hold without a limit, for requests that this process makes itself. */
export const unlimitedHold: BodyHold = { isLarge: false, resize() {}, force() {}, release() {} }

/**
 * The budget for bodies in memory: requests that are read and handled, and responses that wait for a slow reader. Bytes
 * are counted before they are read; a request that finds the budget spent is refused at once instead of waiting.
 */
export class BodyMemory {
  readonly #large: Pool
  readonly #small: { readonly verified: Pool; readonly strangers: Pool }

  constructor({ totalBytes, perCallerBytes }: BodyMemoryLimits) {
    this.#large = new Pool(totalBytes, perCallerBytes)
    const smallPool = () => new Pool(totalBytes * smallShare, perCallerBytes * smallShare)
    this.#small = { verified: smallPool(), strangers: smallPool() }
  }

  hold({ caller, isVerified }: BodyOwner): BodyHold {
    const small = isVerified ? this.#small.verified : this.#small.strangers
    let [pool, held] = [small, 0]
    const large = this.#large
    const move = (bytes: number, isForced: boolean) => {
      const next = bytes > smallBodyBytes ? large : small
      pool.give(caller, held)
      const isTaken = next.take(caller, bytes, isForced)
      if (!isTaken) pool.take(caller, held, true)
      else [pool, held] = [next, bytes]
      return isTaken
    }
    return {
      get isLarge() {
        return pool === large
      },
      resize(bytes) {
        if (!move(bytes, false))
          throw overloaded('the server has no memory left for this body while others are in progress')
      },
      force: bytes => void move(bytes, true),
      release: () => void move(0, true),
    }
  }
}

/** @returns the refusal of a body for which the server has no memory now */
export function overloaded(message: string, cause?: unknown): WbError {
  const headers = { 'retry-after': String(retryAfterSeconds) }
  return new WbError('overloaded', message, { headers }, { cause })
}

/** Bytes in use, in total and by caller. */
class Pool {
  #total = 0
  readonly #byCaller = new Map<string, number>()

  constructor(
    private readonly totalMax: number,
    private readonly perCallerMax: number,
  ) {}

  take(caller: string, bytes: number, isForced: boolean): boolean {
    const ofCaller = (this.#byCaller.get(caller) ?? 0) + bytes
    const isOver = this.#total + bytes > this.totalMax || ofCaller > this.perCallerMax
    if (isOver && !isForced) return false
    this.#total += bytes
    if (ofCaller > 0) this.#byCaller.set(caller, ofCaller)
    return true
  }

  give(caller: string, bytes: number): void {
    this.#total -= bytes
    const left = (this.#byCaller.get(caller) ?? 0) - bytes
    if (left > 0) this.#byCaller.set(caller, left)
    else this.#byCaller.delete(caller)
  }
}
