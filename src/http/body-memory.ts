import { overloaded } from '../contract/errors.ts'

/**
 * Maximum size of a small body, in bytes. Small bodies have a separate budget, so that requests with large
 * bodies cannot block searches or sign-ins.
 */
export const smallBodyBytes = 131_072

/** Size of each budget for small bodies, as a fraction of the budget for large bodies. */
const smallBudgetShare = 1 / 8

export interface BodyMemoryLimits {
  /** Maximum total size of the large bodies in memory, in bytes. */
  readonly totalBytes: number
  /** Maximum total size of the large bodies of one caller, in bytes. */
  readonly perCallerBytes: number
}

/**
 * Caller whose budget a body counts against. Verified and unverified callers have separate budgets for small
 * bodies.
 */
export interface BodyOwner {
  readonly caller: string
  readonly isVerified: boolean
}

/** Memory that one request has reserved for bodies. */
export interface BodyReservation {
  /** True while more than {@link smallBodyBytes} are reserved. */
  readonly isLarge: boolean
  /**
   * Changes the total number of reserved bytes.
   *
   * @throws overloaded  when the budget of the caller or of the process is used up; the reservation does not
   *   change
   */
  resize(bytes: number): void
  /** Like {@link resize}, but can exceed the budgets. For bytes that are already in memory. */
  force(bytes: number): void
  release(): void
}

/** A reservation without a limit, for requests from this process. */
export const unlimitedReservation: BodyReservation = { isLarge: false, resize() {}, force() {}, release() {} }

/**
 * Memory budget for request bodies, and for responses that a client has not read yet. Bytes are counted before
 * they are read. If the budget is used up, a request is rejected immediately instead of waiting.
 */
export class BodyMemory {
  readonly #large: BytePool
  readonly #small: { readonly verified: BytePool; readonly unverified: BytePool }

  constructor({ totalBytes, perCallerBytes }: BodyMemoryLimits) {
    this.#large = new BytePool(totalBytes, perCallerBytes)
    const smallPool = () => new BytePool(totalBytes * smallBudgetShare, perCallerBytes * smallBudgetShare)
    this.#small = { verified: smallPool(), unverified: smallPool() }
  }

  reserve({ caller, isVerified }: BodyOwner): BodyReservation {
    const small = isVerified ? this.#small.verified : this.#small.unverified
    let [pool, reserved] = [small, 0]
    const large = this.#large
    const tryReserve = (bytes: number, isForced: boolean) => {
      const next = bytes > smallBodyBytes ? large : small
      pool.release(caller, reserved)
      const isReserved = next.take(caller, bytes, isForced)
      if (!isReserved) pool.take(caller, reserved, true)
      else [pool, reserved] = [next, bytes]
      return isReserved
    }
    return {
      get isLarge() {
        return pool === large
      },
      resize(bytes) {
        if (!tryReserve(bytes, false)) throw overloaded('the server has no memory left for this body')
      },
      force: bytes => void tryReserve(bytes, true),
      release: () => void tryReserve(0, true),
    }
  }
}

/** Counts the reserved bytes, in total and by caller. */
class BytePool {
  #total = 0
  readonly #byCaller = new Map<string, number>()

  constructor(
    private readonly totalMax: number,
    private readonly perCallerMax: number,
  ) {}

  take(caller: string, bytes: number, isForced: boolean): boolean {
    const callerBytes = (this.#byCaller.get(caller) ?? 0) + bytes
    const exceedsLimit = this.#total + bytes > this.totalMax || callerBytes > this.perCallerMax
    if (exceedsLimit && !isForced) return false
    this.#total += bytes
    if (callerBytes > 0) this.#byCaller.set(caller, callerBytes)
    return true
  }

  release(caller: string, bytes: number): void {
    this.#total -= bytes
    const left = (this.#byCaller.get(caller) ?? 0) - bytes
    if (left > 0) this.#byCaller.set(caller, left)
    else this.#byCaller.delete(caller)
  }
}
