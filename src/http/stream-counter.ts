import { WbError } from '../contract/errors.ts'

/** Equals the ping interval of streams, because the next ping detects a disconnected client. */
const retryAfterSeconds = 15

/** Counts the open event streams or the open uploads of each caller. */
export class StreamCounter {
  readonly #counts = new Map<string, number>()

  /**
   * @param noun          plural noun for messages
   * @param perCallerMax  maximum number of open streams or uploads per caller
   */
  constructor(
    private readonly noun: 'streams' | 'uploads',
    private readonly perCallerMax: number,
  ) {}

  /**
   * Counts a new stream or upload, and returns a function to call when it ends.
   *
   * @throws rate_limited  when the caller has reached the maximum
   */
  open(caller: string): () => void {
    const count = this.#counts.get(caller) ?? 0
    if (count >= this.perCallerMax)
      throw new WbError('rate_limited', `this caller has ${this.perCallerMax} ${this.noun} open`, {
        hint: `Close one first, or raise runtime.${this.noun}PerCaller in the configuration.`,
        headers: { 'retry-after': String(retryAfterSeconds) },
      })
    this.#counts.set(caller, count + 1)
    return () => this.#close(caller)
  }

  #close(caller: string): void {
    const left = this.#counts.get(caller)! - 1
    if (left > 0) this.#counts.set(caller, left)
    else this.#counts.delete(caller)
  }
}
