import { abortWith } from '../../base/deadline.ts'
import type { TurnEvent } from '../../contract/chat.ts'
import type { ServerEvent } from '../../contract/route.ts'

/**
 * Streams the events of a turn to one reader. When the reader disconnects, immediately cancels the pending work of the
 * turn. The `return` method of a generator would wait for that work.
 */
export class TurnStream implements AsyncIterableIterator<ServerEvent> {
  readonly #events: AsyncGenerator<TurnEvent, void, undefined>
  readonly #cancel: AbortController
  readonly #removeAbortListener: () => void

  /**
   * @param readerSignal  fires when the reader disconnects
   * @param cancel        cancels the turn
   */
  constructor(
    events: AsyncGenerator<TurnEvent, void, undefined>,
    readerSignal: AbortSignal,
    cancel: AbortController,
  ) {
    this.#events = events
    this.#cancel = cancel
    this.#removeAbortListener = abortWith(cancel, readerSignal)
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async next(): Promise<IteratorResult<ServerEvent>> {
    let isFinished = true
    try {
      const { done, value } = await this.#events.next()
      isFinished = Boolean(done)
      return done ? { done, value: undefined } : { done: false, value: { id: '', ...value } }
    } finally {
      // A model request can still be running if the question could not be stored.
      if (isFinished) this.#cancel.abort()
    }
  }

  async return(): Promise<IteratorResult<ServerEvent>> {
    this.#cancel.abort()
    this.#removeAbortListener()
    await this.#events.return()
    return { done: true, value: undefined }
  }
}
