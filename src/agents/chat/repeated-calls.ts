import { isObject } from '../../base/is-object.ts'
import type { ToolCall, ToolOutcome } from '../../contract/chat.ts'

/** Result of a call that ran. */
interface RanCall {
  readonly content: string
  readonly outcome: ToolOutcome
}

const note = '[This call was made before with the same arguments. It was not run again. Its result was:]'

/**
 * Results of the calls in the current round and in the one before, for models that repeat a call. A call that failed in
 * an earlier round runs again.
 */
export class RepeatedCalls {
  readonly #round = new Map<string, RanCall>()
  #before = new Map<string, RanCall>()
  #isLoop = false

  /** Begins the round of an answer. */
  begin(calls: readonly ToolCall[]): void {
    this.#before = new Map([...this.#round].filter(([, { outcome }]) => outcome !== 'failure'))
    this.#round.clear()
    this.#isLoop = calls.every(call => this.#before.has(keyOf(call)))
  }

  /** Returns true if all calls of the round were also made in the previous one. */
  get isLoop(): boolean {
    return this.#isLoop
  }

  /** Returns the result of an equal call, with a note to the model; undefined if the call is new. */
  resultOf(call: ToolCall): RanCall | undefined {
    const key = keyOf(call)
    const ran = this.#round.get(key) ?? this.#before.get(key)
    if (!ran) return undefined
    this.#round.set(key, ran)
    return { ...ran, content: `${note}\n${ran.content}` }
  }

  add(call: ToolCall, { content, outcome }: RanCall): void {
    this.#round.set(keyOf(call), { content, outcome })
  }
}

/** Returns a key that is equal for calls that differ only in the layout of their arguments. */
function keyOf({ name, arguments: written }: ToolCall): string {
  try {
    const given: unknown = JSON.parse(written)
    return JSON.stringify([name, isObject(given) ? Object.entries(given).sort(byName) : given])
  } catch {
    return JSON.stringify([name, written])
  }
}

function byName([one]: [string, unknown], [other]: [string, unknown]): number {
  return one < other ? -1 : 1
}
