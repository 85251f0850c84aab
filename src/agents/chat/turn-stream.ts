import { abortWith } from '../../base/deadline.ts'
import type { TurnEvent } from '../../contract/chat.ts'
import type { ServerEvent } from '../../contract/route.ts'

/**
 * Streams the events of a turn to one reader. When the reader leaves, pending work of the turn is cancelled at once;
 * the `return` of a generator would wait for it.
 */
export class TurnStream implements AsyncIterableIterator<ServerEvent> {
  readonly #events: AsyncGenerator<TurnEvent, void, undefined>
  readonly #leave: AbortController
  readonly #unlink: () => void

  /**
   * @param gone   fires when the reader leaves
   * @param leave  cancels the turn
   */
  constructor(events: AsyncGenerator<TurnEvent, void, undefined>, gone: AbortSignal, leave: AbortController) {
    this.#events = events
    this.#leave = leave
    this.#unlink = abortWith(leave, gone)
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async next(): Promise<IteratorResult<ServerEvent>> {
    let isOver = true
    try {
      const { done, value } = await this.#events.next()
      isOver = Boolean(done)
      return done ? { done, value: undefined } : { done: false, value: { id: '', ...value } }
    } finally {
      // The model can still be answering a question that was not stored.
      if (isOver) this.#leave.abort()
    }
  }

  async return(): Promise<IteratorResult<ServerEvent>> {
    this.#leave.abort()
    this.#unlink()
    await this.#events.return()
    return { done: true, value: undefined }
  }
}
