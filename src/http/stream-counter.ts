import { WbError } from '../contract/errors.ts'

/** Ping interval of streams. The next ping detects a disconnected reader. */
const retryAfterSeconds = 15

/** Counts the open streams of each caller, in one direction. */
export class StreamCounter {
  readonly #counts = new Map<string, number>()

  /**
   * @param what          plural noun for messages
   * @param perCallerMax  maximum number of open streams per caller
   */
  constructor(
    private readonly what: 'streams' | 'uploads',
    private readonly perCallerMax: number,
  ) {}

  /**
   * Counts a new stream, and returns a function that releases it.
   *
   * @throws rate_limited  when the caller has reached the maximum
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
