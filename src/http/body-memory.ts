import { WbError } from '../contract/errors.ts'

/**
 * Maximum size of a small body, in bytes. Small bodies have a separate budget, so large ones cannot make a
 * search or a sign-in fail.
 */
export const smallBodyBytes = 131_072

/** Size of each budget for small bodies, as a share of the budget for large ones. */
const smallShare = 1 / 8

const retryAfterSeconds = 1

export interface BodyMemoryLimits {
  /** Maximum total size of the large bodies in memory, in bytes. */
  readonly totalBytes: number
  /** Maximum total size of the large bodies of one caller, in bytes. */
  readonly perCallerBytes: number
}

/**
 * Caller whose budget a body uses. Verified and unverified callers have separate budgets for small bodies.
 */
export interface BodyOwner {
  readonly caller: string
  readonly isVerified: boolean
}

/** Memory for bodies that one request has reserved. */
export interface BodyReservation {
  /** True while more than {@link smallBodyBytes} are held. */
  readonly isLarge: boolean
  /**
   * Changes the total number of reserved bytes.
   *
   * @throws overloaded  when the budget of the caller or of the process is used up; the reservation is then
   *   unchanged
   */
  resize(bytes: number): void
  /** Reserves memory for bytes that already exist, even above the budget. */
  force(bytes: number): void
  release(): void
}

/** A hold without a limit, for requests that this process makes itself. */
export const unlimitedReservation: BodyReservation = { isLarge: false, resize() {}, force() {}, release() {} }

/**
 * Budget for bodies in memory: requests being read or handled, and responses waiting for a slow reader. Bytes
 * are counted before they are read. If the budget is used up, a request is refused at once instead of
 * waiting.
 */
export class BodyMemory {
  readonly #large: BytePool
  readonly #small: { readonly verified: BytePool; readonly strangers: BytePool }

  constructor({ totalBytes, perCallerBytes }: BodyMemoryLimits) {
    this.#large = new BytePool(totalBytes, perCallerBytes)
    const smallPool = () => new BytePool(totalBytes * smallShare, perCallerBytes * smallShare)
    this.#small = { verified: smallPool(), strangers: smallPool() }
  }

  reserve({ caller, isVerified }: BodyOwner): BodyReservation {
    const small = isVerified ? this.#small.verified : this.#small.strangers
    let [pool, held] = [small, 0]
    const large = this.#large
    const move = (bytes: number, isForced: boolean) => {
      const next = bytes > smallBodyBytes ? large : small
      pool.release(caller, held)
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

/** Returns the error for a body that does not fit into memory now. */
export function overloaded(message: string, cause?: unknown): WbError {
  const headers = { 'retry-after': String(retryAfterSeconds) }
  return new WbError('overloaded', message, { headers }, { cause })
}

/** Counts bytes in use, in total and by caller. */
class BytePool {
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

  release(caller: string, bytes: number): void {
    this.#total -= bytes
    const left = (this.#byCaller.get(caller) ?? 0) - bytes
    if (left > 0) this.#byCaller.set(caller, left)
    else this.#byCaller.delete(caller)
  }
}
