import { isObject } from '../../base/is-object.ts'
import type { ToolCall, ToolOutcome } from '../../contract/chat.ts'

/** Result of a call that can be repeated to the model. */
interface RepeatableResult {
  readonly content: string
  readonly outcome: ToolOutcome
}

const repeatNote =
  '[This call was made before with the same arguments. It was not run again. Its result was:]'

/**
 * Results of the tool calls in the current and the previous round. A repeated call does not run: it gets the earlier
 * result, with a note. A repetition of a call that failed in the previous round runs.
 */
export class RepeatedCalls {
  readonly #currentRound = new Map<string, RepeatableResult>()
  #previousRound = new Map<string, RepeatableResult>()
  #repeatsRound = false

  /** Starts a round with the calls of one model answer. */
  startRound(calls: readonly ToolCall[]): void {
    this.#previousRound = new Map([...this.#currentRound].filter(([, { outcome }]) => outcome !== 'failure'))
    this.#currentRound.clear()
    this.#repeatsRound = calls.every(call => this.#previousRound.has(keyOf(call)))
  }

  /** True if all calls of the current round were also made in the previous one, and did not fail there. */
  get repeatsRound(): boolean {
    return this.#repeatsRound
  }

  /**
   * Returns the result of an identical call in this round or the previous one, with a note to the model. Returns
   * undefined if the call has to run.
   */
  resultOf(call: ToolCall): RepeatableResult | undefined {
    const key = keyOf(call)
    const result = this.#currentRound.get(key) ?? this.#previousRound.get(key)
    if (!result) return undefined
    this.#currentRound.set(key, result)
    return { ...result, content: `${repeatNote}\n${result.content}` }
  }

  add(call: ToolCall, { content, outcome }: RepeatableResult): void {
    this.#currentRound.set(keyOf(call), { content, outcome })
  }
}

/** Returns a key for comparing calls. It ignores white space and the order of the arguments. */
function keyOf({ name, arguments: text }: ToolCall): string {
  try {
    const parsed: unknown = JSON.parse(text)
    return JSON.stringify([name, isObject(parsed) ? Object.entries(parsed).sort(byName) : parsed])
  } catch {
    return JSON.stringify([name, text])
  }
}

function byName([left]: [string, unknown], [right]: [string, unknown]): number {
  return left < right ? -1 : 1
}
