import type { Clock } from '../../base/clock.ts'

/** Longest reasoning that is stored with an answer, in UTF-16 units. */
const charsMax = 8_000

/** The reasoning of a turn and the time that it took. */
export class ReasoningRecord {
  #text = ''
  #ms = 0
  #sinceMs: number | undefined

  constructor(private readonly clock: Clock) {}

  add(delta: string): void {
    this.#sinceMs ??= this.clock.now()
    if (this.#text.length <= charsMax) this.#text += delta
  }

  /** Stops the timer when the model continues with its answer or a tool call. */
  pause(): void {
    if (this.#sinceMs === undefined) return
    this.#ms += this.clock.now() - this.#sinceMs
    this.#sinceMs = undefined
    this.#text += '\n\n'
  }

  get ms(): number {
    return this.#ms
  }

  /** The reasoning, cut if it is long. */
  get text(): string {
    const text = this.#text.trim()
    return text.length <= charsMax ? text : `${text.slice(0, charsMax - 1)}…`
  }
}
