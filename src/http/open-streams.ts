import { WbError } from '../contract/errors.ts'

/** The server notices at the next ping that the reader of a stream has gone. */
const retryAfterSeconds = 15

/** Counts the streams that each caller has open, in one direction. */
export class OpenStreams {
  readonly #counts = new Map<string, number>()

  /**
   * @param what          plural noun for messages
   * @param perCallerMax  streams that one caller may have open
   */
  constructor(
    private readonly what: 'streams' | 'uploads',
    private readonly perCallerMax: number,
  ) {}

  /**
   * Counts one more, and returns a function that ends it.
   *
   * @throws rate_limited  the caller has as many open as allowed
   */
  open(caller: string): () => void {
    const before = this.#counts.get(caller) ?? 0
    if (before >= this.perCallerMax)
      throw new WbError('rate_limited', `this caller has ${this.perCallerMax} ${this.what} open`, {
        hint: `Close one first, or raise runtime.${this.what}PerCaller in the configuration.`,
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
