import { abortWith } from '../../base/deadline.ts'
import type { TurnEvent } from '../../contract/chat.ts'
import type { ServerEvent } from '../../contract/route.ts'

/**
 * What a turn tells, for one reader. When the reader goes away, what the turn waits for is called off at once: the
 * `return` of a generator alone would wait for it.
 */
export class TurnStream implements AsyncIterableIterator<ServerEvent> {
  readonly #events: AsyncGenerator<TurnEvent, void, undefined>
  readonly #leave: AbortController
  readonly #letGo: () => void

  /**
   * @param gone   fires when the reader goes away
   * @param leave  calls the turn off
   */
  constructor(events: AsyncGenerator<TurnEvent, void, undefined>, gone: AbortSignal, leave: AbortController) {
    this.#events = events
    this.#leave = leave
    this.#letGo = abortWith(leave, gone)
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
    this.#letGo()
    await this.#events.return()
    return { done: true, value: undefined }
  }
}
