import { randomNameHex } from '../../base/id.ts'
import type { ToolCall } from '../../contract/chat.ts'
import { fieldOfUntrusted, ProviderFailure } from '../provider/provider-failure.ts'
import { JsonEnd } from './json-end.ts'

/** Maximum number of calls in one answer. */
export const callsMax = 64
const idBytes = 12

interface CallDraft {
  id: string
  name: string
  written: string
  readonly end: JsonEnd
  /** Extra fields of a provider that must be sent back with the call. */
  extra?: unknown
}

/** A tool call that was assembled from its pieces. */
export interface DraftedCall extends ToolCall {
  readonly extra?: unknown
}

/**
 * Assembles tool calls from their pieces.
 *
 * In the protocol, a piece names its call by `index`, and only the first piece has an ID and a name. Some
 * providers omit the index (Gemini), give all calls the index 0 (Ollama), repeat the ID and the name in every
 * piece, split the name, or send no ID (Gemini, also with index 0 for all calls).
 *
 * @see https://platform.openai.com/docs/api-reference/chat-streaming/streaming
 */
export class ToolCallDrafts {
  readonly #calls: CallDraft[] = []
  readonly #byIndex = new Map<number, CallDraft>()

  /** @param isWhole  returns true for the complete name of a tool in the request */
  constructor(private readonly isWhole: (name: string) => boolean) {}

  /**
   * Adds the pieces of one event.
   *
   * @returns the number of characters added
   * @throws ProviderFailure  there are too many calls
   */
  add(pieces: readonly unknown[]): number {
    let added = 0
    for (const [at, piece] of pieces.entries()) {
      const id = textIn(piece, 'id')
      const name = textIn(fieldOfUntrusted(piece, 'function'), 'name')
      const written = argumentsIn(piece)
      const call = this.#callOf(fieldOfUntrusted(piece, 'index'), id, name, at > 0)
      if (call.id === '') {
        call.id = id
        added += id.length
      }
      if (call.name !== name || !this.isWhole(name)) call.name += name
      call.written += written
      call.end.read(written)
      call.extra ??= fieldOfUntrusted(piece, 'extra_content')
      added += name.length + written.length
    }
    return added
  }

  /** Returns the calls in the order of their first pieces. Each has a unique ID. */
  all(): DraftedCall[] {
    const used = new Set<string>()
    return this.#calls.map(({ id: given, name, written, extra }) => {
      const id = given === '' || used.has(given) ? newCallId() : given
      used.add(id)
      return { id, name, arguments: written, ...(extra === undefined ? {} : { extra }) }
    })
  }

  #callOf(index: unknown, id: string, name: string, isBesideAnother: boolean): CallDraft {
    const known = typeof index === 'number' ? this.#byIndex.get(index) : this.#withoutIndex(id)
    const isAnother =
      typeof index === 'number'
        ? name !== '' && (id === '' ? known?.end.isReached : known?.id !== '' && known?.id !== id)
        : name !== '' && id === '' && (isBesideAnother || Boolean(known?.written))
    if (known && !isAnother) return known
    if (this.#calls.length === callsMax) throw tooManyCalls()
    const call = { id: '', name: '', written: '', end: new JsonEnd() }
    this.#calls.push(call)
    if (typeof index === 'number') this.#byIndex.set(index, call)
    return call
  }

  #withoutIndex(id: string): CallDraft | undefined {
    return id === '' ? this.#calls.at(-1) : this.#calls.find(call => call.id === id)
  }
}

export function tooManyCalls(): ProviderFailure {
  return new ProviderFailure(`sent an answer with more than ${callsMax} calls of tools`)
}

/** Returns a new ID for a call that has none. */
export function newCallId(): string {
  return `call_${randomNameHex(idBytes)}`
}

function textIn(value: unknown, name: string): string {
  const text = fieldOfUntrusted(value, name)
  return typeof text === 'string' ? text : ''
}

function argumentsIn(piece: unknown): string {
  const written = fieldOfUntrusted(fieldOfUntrusted(piece, 'function'), 'arguments') ?? ''
  return typeof written === 'string' ? written : JSON.stringify(written)
}
