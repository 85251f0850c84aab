import type { Clock } from '../../base/clock.ts'

/** Maximum length in UTF-16 units of the reasoning that is stored with an answer. */
const charsMax = 8_000

/** The reasoning of a turn, and the time that the model spent on it. */
export class ReasoningRecord {
  #text = ''
  #ms = 0
  #startedAtMs: number | undefined

  constructor(private readonly clock: Clock) {}

  add(delta: string): void {
    this.#startedAtMs ??= this.clock.now()
    if (this.#text.length <= charsMax) this.#text += delta
  }

  /** Stops the timer when the model continues with its answer or a tool call. */
  pause(): void {
    if (this.#startedAtMs === undefined) return
    this.#ms += this.clock.now() - this.#startedAtMs
    this.#startedAtMs = undefined
    this.#text += '\n\n'
  }

  get ms(): number {
    return this.#ms
  }

  /** The reasoning, truncated to its maximum length. */
  get text(): string {
    const text = this.#text.trim()
    return text.length <= charsMax ? text : `${text.slice(0, charsMax - 1)}…`
  }
}
