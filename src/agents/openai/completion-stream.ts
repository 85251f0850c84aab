import { drainingError } from '../../access/run-until-caller-disconnects.ts'
import type { TurnEvent } from '../../contract/chat.ts'
import { isErrorCode, WbError } from '../../contract/errors.ts'
import type { ServerEvent } from '../../contract/route.ts'
import { answerFailed, type CompletionChunks } from './chat-completion.ts'

/** Separator between the text before a tool call and the text after it. */
const separator = '\n\n'

/** Events of a streamed completion, converted from the events of a turn. Closing the stream stops the turn. */
export class CompletionStream implements AsyncIterableIterator<ServerEvent> {
  readonly #turnEvents: AsyncIterator<ServerEvent>
  readonly #events: AsyncGenerator<ServerEvent, void, undefined>
  #firstEvent: IteratorResult<ServerEvent> | undefined

  constructor(turn: AsyncIterable<ServerEvent>, chunks: CompletionChunks) {
    this.#turnEvents = turn[Symbol.asyncIterator]()
    this.#events = completionEventsOf(turn, chunks)
  }

  /**
   * Waits until the answer starts, so that the response to an earlier failure has an HTTP error status.
   *
   * @throws chat_answer_failed, and the errors that occur before the model call
   * @throws draining  the turn ended before the answer started
   */
  async waitForStart(): Promise<void> {
    this.#firstEvent = await this.#events.next()
    if (this.#firstEvent.done) throw drainingError()
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async next(): Promise<IteratorResult<ServerEvent>> {
    const first = this.#firstEvent
    this.#firstEvent = undefined
    return first ?? this.#events.next()
  }

  async return(): Promise<IteratorResult<ServerEvent>> {
    await this.#turnEvents.return?.()
    await this.#events.return()
    return { done: true, value: undefined }
  }
}

async function* completionEventsOf(
  turn: AsyncIterable<ServerEvent>,
  chunks: CompletionChunks,
): AsyncGenerator<ServerEvent, void, undefined> {
  let hasStarted = false
  let hasText = false
  let isSeparated = true
  function* start() {
    if (!hasStarted) yield event('chunk', chunks.first())
    hasStarted = true
  }
  for await (const turnEvent of turn) {
    const { event: name, data } = turnEvent as unknown as TurnEvent
    if (name === 'stream-error') throw toWbError(data)
    if (name === 'token') {
      yield* start()
      yield event('chunk', chunks.text(isSeparated ? data.delta : separator + data.delta))
      hasText = isSeparated = true
    } else if (name === 'token-reset') {
      isSeparated = !hasText
    } else if (name === 'tool-call') {
      yield* start()
    } else if (name === 'error') {
      const failure = answerFailed(data)
      if (!hasStarted) throw failure
      yield event('error', toOpenAiError(failure))
    } else if (name === 'done') {
      yield* start()
      for (const chunk of chunks.last(data)) yield event('chunk', chunk)
      yield event('done', {})
    }
  }
}

function event(name: string, data: object): ServerEvent {
  return { id: '', event: name, data }
}

function toWbError({ code, message, hint }: Extract<TurnEvent, { event: 'stream-error' }>['data']): WbError {
  return new WbError(isErrorCode(code) ? code : 'chat_answer_failed', message, { hint })
}

function toOpenAiError({ code, message }: WbError) {
  return { error: { message, type: 'server_error', code, param: null } }
}
