import { nameHex } from '../../base/id.ts'
import type { ToolCall } from '../../contract/chat.ts'
import { field, ProviderFailure } from '../provider/failure.ts'
import { JsonEnd } from './json-end.ts'

/** Maximum number of calls in one answer. */
export const callsMax = 64
const idBytes = 12

interface CallDraft {
  id: string
  name: string
  written: string
  readonly end: JsonEnd
  /** Fields of other providers that are sent back with the call. */
  extra?: unknown
}

/** A tool call that was assembled from its pieces. */
export interface DraftedCall extends ToolCall {
  readonly extra?: unknown
}

/**
 * Calls of tools, put together from their pieces.
 *
 * By the protocol a piece names its call by `index`, and only the first piece has an id and a name. Providers leave the
 * index out (Gemini), give all calls the index 0 (Ollama), repeat id and name in every piece, cut the name in pieces,
 * or give no id (Gemini, also with index 0 for all calls).
 *
 * @see https://platform.openai.com/docs/api-reference/chat-streaming/streaming
 */
export class ToolCallDrafts {
  readonly #calls: CallDraft[] = []
  readonly #byIndex = new Map<number, CallDraft>()

  /** @param isWhole  whether a name is one of the request's, and needs no more pieces */
  constructor(private readonly isWhole: (name: string) => boolean) {}

  /**
   * Take in the pieces of one event.
   *
   * @returns how many characters they add
   * @throws ProviderFailure  there are more calls than anyone makes
   */
  add(pieces: readonly unknown[]): number {
    let added = 0
    for (const [at, piece] of pieces.entries()) {
      const id = textIn(piece, 'id')
      const name = textIn(field(piece, 'function'), 'name')
      const written = argumentsIn(piece)
      const call = this.#callOf(field(piece, 'index'), id, name, at > 0)
      if (call.id === '') {
        call.id = id
        added += id.length
      }
      if (call.name !== name || !this.isWhole(name)) call.name += name
      call.written += written
      call.end.read(written)
      call.extra ??= field(piece, 'extra_content')
      added += name.length + written.length
    }
    return added
  }

  /** In the order of their first pieces; each with an id that no other has. */
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

/** Returns a new id for a call that came without one. */
export function newCallId(): string {
  return `call_${nameHex(idBytes)}`
}

function textIn(value: unknown, name: string): string {
  const text = field(value, name)
  return typeof text === 'string' ? text : ''
}

function argumentsIn(piece: unknown): string {
  const written = field(field(piece, 'function'), 'arguments') ?? ''
  return typeof written === 'string' ? written : JSON.stringify(written)
}
