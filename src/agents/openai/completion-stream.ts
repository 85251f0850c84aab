import type { TurnEvent } from '../../contract/chat.ts'
import { isErrorCode, WbError } from '../../contract/errors.ts'
import type { ServerEvent } from '../../contract/route.ts'
import { drainingError } from '../chat/opened-turn.ts'
import { answerFailed, type CompletionChunks } from './chat-completion.ts'

/** Separator between the text before a tool call and the text after it. */
const separator = '\n\n'

/** Events of a streamed completion, derived from the events of a turn. Ending it ends the turn. */
export class CompletionStream implements AsyncIterableIterator<ServerEvent> {
  readonly #turn: AsyncIterator<ServerEvent>
  readonly #events: AsyncGenerator<ServerEvent, void, undefined>
  #first: IteratorResult<ServerEvent> | undefined

  constructor(turn: AsyncIterable<ServerEvent>, chunks: CompletionChunks) {
    this.#turn = turn[Symbol.asyncIterator]()
    this.#events = completionEventsOf(turn, chunks)
  }

  /**
   * Waits for the beginning of the answer, so that an earlier failure gets its own status.
   *
   * @throws errors before the model call, chat_answer_failed
   * @throws draining  the turn was ended in the meantime
   */
  async begin(): Promise<void> {
    this.#first = await this.#events.next()
    if (this.#first.done) throw drainingError()
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async next(): Promise<IteratorResult<ServerEvent>> {
    const first = this.#first
    this.#first = undefined
    return first ?? this.#events.next()
  }

  async return(): Promise<IteratorResult<ServerEvent>> {
    await this.#turn.return?.()
    await this.#events.return()
    return { done: true, value: undefined }
  }
}

async function* completionEventsOf(
  turn: AsyncIterable<ServerEvent>,
  chunks: CompletionChunks,
): AsyncGenerator<ServerEvent, void, undefined> {
  let hasBegun = false
  let hasText = false
  let isSeparated = true
  function* begin() {
    if (!hasBegun) yield event('chunk', chunks.first())
    hasBegun = true
  }
  for await (const told of turn) {
    const { event: name, data } = told as unknown as TurnEvent
    if (name === 'stream-error') throw refusalOf(data)
    if (name === 'token') {
      yield* begin()
      yield event('chunk', chunks.text(isSeparated ? data.delta : separator + data.delta))
      hasText = isSeparated = true
    } else if (name === 'token-reset') {
      isSeparated = !hasText
    } else if (name === 'tool-call') {
      yield* begin()
    } else if (name === 'error') {
      const failure = answerFailed(data)
      if (!hasBegun) throw failure
      yield event('error', errorOf(failure))
    } else if (name === 'done') {
      yield* begin()
      for (const chunk of chunks.last(data)) yield event('chunk', chunk)
      yield event('done', {})
    }
  }
}

function event(name: string, data: object): ServerEvent {
  return { id: '', event: name, data }
}

function refusalOf({ code, message, hint }: Extract<TurnEvent, { event: 'stream-error' }>['data']): WbError {
  return new WbError(isErrorCode(code) ? code : 'chat_answer_failed', message, { hint })
}

function errorOf({ code, message }: WbError) {
  return { error: { message, type: 'server_error', code, param: null } }
}
