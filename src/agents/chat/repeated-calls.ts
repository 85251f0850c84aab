import { isObject } from '../../base/is-object.ts'
import type { ToolCall, ToolOutcome } from '../../contract/chat.ts'
import type { MessageSource } from '../../storage/tables.ts'

/** A call's result that can be sent to the model again. */
interface RepeatableResult {
  readonly content: string
  readonly outcome: ToolOutcome
  readonly sources: readonly MessageSource[]
}

const repeatNote =
  '[This call was made before with the same arguments. It was not run again. Its result was:]'

/**
 * Results of the tool calls in the current and the previous round. A repeated call does not run again: its result is
 * the earlier result with a note. However, a call that failed in the previous round can run again.
 */
export class RepeatedCalls {
  readonly #currentRound = new Map<string, RepeatableResult>()
  #previousRound = new Map<string, RepeatableResult>()
  #repeatsPreviousRound = false

  /** Starts a round with the calls of one model answer. */
  startRound(calls: readonly ToolCall[]): void {
    this.#previousRound = new Map([...this.#currentRound].filter(([, { outcome }]) => outcome !== 'failure'))
    this.#currentRound.clear()
    this.#repeatsPreviousRound = calls.every(call => this.#previousRound.has(keyOf(call)))
  }

  /** True if the previous round contained all calls of the current round, and none of them failed there. */
  get repeatsPreviousRound(): boolean {
    return this.#repeatsPreviousRound
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

  add(call: ToolCall, { content, outcome, sources }: RepeatableResult): void {
    this.#currentRound.set(keyOf(call), { content, outcome, sources })
  }
}

/** Returns a key for comparing calls. White space and the order of the arguments do not affect it. */
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
