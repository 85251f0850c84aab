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
 * Results of tool calls in the current and the previous round. If a model repeats a call, it gets the earlier
 * result. A call that failed in an earlier round runs again.
 */
export class RepeatedCalls {
  readonly #currentRound = new Map<string, RepeatableResult>()
  #previousRound = new Map<string, RepeatableResult>()
  #repeatsRound = false

  /** Starts a round with the calls of one model answer. */
  beginRound(calls: readonly ToolCall[]): void {
    this.#previousRound = new Map([...this.#currentRound].filter(([, { outcome }]) => outcome !== 'failure'))
    this.#currentRound.clear()
    this.#repeatsRound = calls.every(call => this.#previousRound.has(keyOf(call)))
  }

  /** Returns true if all calls of the round were also made in the previous one. */
  get repeatsRound(): boolean {
    return this.#repeatsRound
  }

  /**
   * Returns the result of an equal call in this round or the previous one, with a note to the model; undefined for
   * a new call.
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

/** Returns a key that is equal for calls that differ only in the layout of their arguments. */
function keyOf({ name, arguments: written }: ToolCall): string {
  try {
    const parsed: unknown = JSON.parse(written)
    return JSON.stringify([name, isObject(parsed) ? Object.entries(parsed).sort(byName) : parsed])
  } catch {
    return JSON.stringify([name, written])
  }
}

function byName([left]: [string, unknown], [right]: [string, unknown]): number {
  return left < right ? -1 : 1
}
