import { randomNameHex } from '../../base/id.ts'
import type { ToolCall } from '../../contract/chat.ts'
import { fieldOfUntrusted, ProviderFailure } from '../provider/provider-failure.ts'
import { JsonEndDetector } from './json-end-detector.ts'

/** Maximum number of calls in one answer. */
export const callsMax = 64
const callIdBytes = 12

interface CallDraft {
  id: string
  name: string
  argumentsText: string
  readonly endDetector: JsonEndDetector
  /** Data from the provider that later requests must contain with the call. */
  extra?: unknown
}

/** A tool call that was assembled from its pieces. */
export interface DraftedCall extends ToolCall {
  readonly extra?: unknown
}

/**
 * Assembles tool calls from their pieces.
 *
 * In the protocol, `index` identifies the call to which a piece belongs, and only the first piece has an ID and a name.
 * Some providers omit the index (Gemini), use index 0 for all calls (Ollama), repeat the ID and the name in every
 * piece, split the name, or send no ID (Gemini, sometimes with index 0 for all calls).
 *
 * @see https://platform.openai.com/docs/api-reference/chat-streaming/streaming
 */
export class ToolCallDrafts {
  readonly #calls: CallDraft[] = []
  readonly #byIndex = new Map<number, CallDraft>()

  /** @param isCompleteName  returns true if a string is the complete name of a tool in the request */
  constructor(private readonly isCompleteName: (name: string) => boolean) {}

  /**
   * Adds the pieces of one event.
   *
   * @returns the number of characters added
   * @throws ProviderFailure  there are too many calls
   */
  add(pieces: readonly unknown[]): number {
    let added = 0
    for (const [at, piece] of pieces.entries()) {
      const id = stringIn(piece, 'id')
      const name = stringIn(fieldOfUntrusted(piece, 'function'), 'name')
      const argumentsText = argumentsIn(piece)
      const call = this.#callOf(fieldOfUntrusted(piece, 'index'), id, name, at > 0)
      if (call.id === '') {
        call.id = id
        added += id.length
      }
      if (call.name !== name || !this.isCompleteName(name)) call.name += name
      call.argumentsText += argumentsText
      call.endDetector.read(argumentsText)
      call.extra ??= fieldOfUntrusted(piece, 'extra_content')
      added += name.length + argumentsText.length
    }
    return added
  }

  /** Returns all calls in the order of their first pieces. Each has a unique ID. */
  calls(): DraftedCall[] {
    const usedIds = new Set<string>()
    return this.#calls.map(({ id: sentId, name, argumentsText, extra }) => {
      const id = sentId === '' || usedIds.has(sentId) ? newCallId() : sentId
      usedIds.add(id)
      return { id, name, arguments: argumentsText, ...(extra === undefined ? {} : { extra }) }
    })
  }

  #callOf(index: unknown, id: string, name: string, isLaterPiece: boolean): CallDraft {
    const matching = typeof index === 'number' ? this.#byIndex.get(index) : this.#findWithoutIndex(id)
    const isNewCall =
      typeof index === 'number'
        ? name !== '' &&
          (id === '' ? matching?.endDetector.isAtEnd : matching?.id !== '' && matching?.id !== id)
        : name !== '' && id === '' && (isLaterPiece || Boolean(matching?.argumentsText))
    if (matching && !isNewCall) return matching
    if (this.#calls.length === callsMax) throw tooManyCalls()
    const call = { id: '', name: '', argumentsText: '', endDetector: new JsonEndDetector() }
    this.#calls.push(call)
    if (typeof index === 'number') this.#byIndex.set(index, call)
    return call
  }

  #findWithoutIndex(id: string): CallDraft | undefined {
    return id === '' ? this.#calls.at(-1) : this.#calls.find(call => call.id === id)
  }
}

export function tooManyCalls(): ProviderFailure {
  return new ProviderFailure(`sent an answer with more than ${callsMax} tool calls`)
}

/** Creates an ID for a tool call that has none. */
export function newCallId(): string {
  return `call_${randomNameHex(callIdBytes)}`
}

function stringIn(value: unknown, name: string): string {
  const text = fieldOfUntrusted(value, name)
  return typeof text === 'string' ? text : ''
}

function argumentsIn(piece: unknown): string {
  const argumentsText = fieldOfUntrusted(fieldOfUntrusted(piece, 'function'), 'arguments') ?? ''
  return typeof argumentsText === 'string' ? argumentsText : JSON.stringify(argumentsText)
}
