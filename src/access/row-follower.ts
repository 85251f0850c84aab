import type { ServerEvent } from '../contract/route.ts'
import type { Stored } from '../storage/rows.ts'

export interface RowFollowerParts<Row> {
  /** Ordinal after which to start. */
  readonly from: number
  /** Returns the next rows after an ordinal, in order; empty if there are none yet. */
  readonly read: (after: number) => Promise<readonly Stored<Row>[]>
  readonly select: (row: Row) => boolean
  readonly toEvent: (row: Row) => ServerEvent
  /** Calls `wake` when there can be more rows. Returns a function that cancels the call. */
  readonly wait: (wake: () => void) => () => void
}

/**
 * Streams the rows of a table once each, in the order of insertion, and waits for new rows at the end.
 *
 * Rows are read on demand, so that at most one slice is in memory if the consumer is slow. This is not a generator,
 * because the `return` of a generator waits for a pending `next`, which may never resolve here.
 */
export class RowFollower<Row> implements AsyncIterableIterator<ServerEvent> {
  readonly #parts: RowFollowerParts<Row>
  readonly #buffer: Row[] = []
  #lastOrdinal: number
  #isClosed = false
  #wake = () => {}

  constructor(parts: RowFollowerParts<Row>) {
    this.#parts = parts
    this.#lastOrdinal = parts.from
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async next(): Promise<IteratorResult<ServerEvent>> {
    while (!this.#isClosed) {
      const row = this.#buffer.shift()
      if (row !== undefined) return { done: false, value: this.#parts.toEvent(row) }
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
    const { read, select, wait } = this.#parts
    let cancelWait = () => {}
    const newRows = new Promise<void>(resolve => {
      this.#wake = resolve
      // Must come before reading, to catch rows inserted during the read.
      cancelWait = wait(resolve)
    })
    try {
      const slice = await read(this.#lastOrdinal)
      this.#lastOrdinal = slice.at(-1)?.ordinal ?? this.#lastOrdinal
      this.#buffer.push(...slice.map(({ row }) => row).filter(select))
      // Lets other work run, even if many rows are skipped.
      await (slice.length === 0 ? newRows : new Promise(setImmediate))
    } finally {
      cancelWait()
    }
  }
}
