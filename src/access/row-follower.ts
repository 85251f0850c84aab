import type { ServerEvent } from '../contract/route.ts'
import type { FeedPosition, FeedSlice } from '../storage/rows.ts'

export interface RowFollowerDependencies<Row> {
  /** Position after which to start. */
  readonly from: FeedPosition
  /** Returns the next rows after a position; empty if there are none yet. */
  readonly read: (after: FeedPosition) => Promise<FeedSlice<Row>>
  readonly select: (row: Row) => boolean
  readonly toEvent: (row: Row) => ServerEvent
  /** Calls `wake` when there can be more rows. Returns a function that cancels the call. */
  readonly wait: (wake: () => void) => () => void
}

/**
 * Streams each row of a table once, in the order of its feed, then waits for new rows.
 *
 * Rows are read on demand, so that at most one slice is in memory if the consumer is slow. This class is not a
 * generator, because the `return` of a generator waits for a pending `next`, which may never resolve here.
 */
export class RowFollower<Row> implements AsyncIterableIterator<ServerEvent> {
  readonly #deps: RowFollowerDependencies<Row>
  readonly #buffer: Row[] = []
  #position: FeedPosition
  #isClosed = false
  #wake = () => {}

  constructor(deps: RowFollowerDependencies<Row>) {
    this.#deps = deps
    this.#position = deps.from
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async next(): Promise<IteratorResult<ServerEvent>> {
    while (!this.#isClosed) {
      const row = this.#buffer.shift()
      if (row !== undefined) return { done: false, value: this.#deps.toEvent(row) }
      await this.#readNextSlice()
    }
    return { done: true, value: undefined }
  }

  async return(): Promise<IteratorResult<ServerEvent>> {
    this.#isClosed = true
    this.#wake()
    return { done: true, value: undefined }
  }

  /** Reads the next slice. If it is empty, waits until there can be new rows. */
  async #readNextSlice(): Promise<void> {
    const { read, select, wait } = this.#deps
    let cancelWait = () => {}
    const newRows = new Promise<void>(resolve => {
      this.#wake = resolve
      // Start to wait before reading, so that rows inserted during the read are not missed.
      cancelWait = wait(resolve)
    })
    try {
      const { rows, position } = await read(this.#position)
      this.#position = position
      this.#buffer.push(...rows.map(({ row }) => row).filter(select))
      // Let other work run, even if many rows are skipped.
      await (rows.length === 0 ? newRows : new Promise(setImmediate))
    } finally {
      cancelWait()
    }
  }
}
