import { WbError } from '../contract/errors.ts'

/**
 * One caller reads that many streams at once, each of which costs the store a look twice a second, and sends that many
 * files, each of which takes room on the disk.
 */
export const streamsPerCallerMax = 32

/** A stream whose reader went away without a word is noticed at its next ping. */
const retryAfterSeconds = 15

/** How many streams each caller has open, in one direction. */
export class OpenStreams {
  readonly #counts = new Map<string, number>()

  /** @param what  they are called, in the plural */
  constructor(private readonly what: 'streams' | 'uploads') {}

  /**
   * Count one more; returns what counts it off.
   *
   * @throws rate_limited  the caller has too many
   */
  open(caller: string): () => void {
    const before = this.#counts.get(caller) ?? 0
    if (before >= streamsPerCallerMax)
      throw new WbError('rate_limited', `${streamsPerCallerMax} ${this.what} of this caller are open`, {
        hint: 'End one of them first.',
        headers: { 'retry-after': String(retryAfterSeconds) },
      })
    this.#counts.set(caller, before + 1)
    return () => this.#close(caller)
  }

  #close(caller: string): void {
    const left = this.#counts.get(caller)! - 1
    if (left > 0) this.#counts.set(caller, left)
    else this.#counts.delete(caller)
  }
}
