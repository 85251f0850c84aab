import type { ServerEvent } from '../contract/route.ts'
import type { Stored } from '../storage/rows.ts'

export interface RowFollowerParts<Row> {
  /** Ordinal after which to start. */
  readonly from: number
  /** Returns the next rows after an ordinal, in order; empty if there are none yet. */
  readonly read: (after: number) => Promise<readonly Stored<Row>[]>
  readonly select: (row: Row) => boolean
  readonly toEvent: (row: Row) => ServerEvent
  /** Calls back when there may be more rows. Returns a function that cancels this. */
  readonly wait: (wake: () => void) => () => void
}

/**
 * Streams the rows of a table in the order of insertion, each once, including rows inserted later.
 *
 * Rows are read on demand, so a slow reader holds at most one slice. This is not a generator, because the
 * `return` of a generator waits for a pending `next`, which may never resolve here.
 */
export class RowFollower<Row> implements AsyncIterableIterator<ServerEvent> {
  readonly #parts: RowFollowerParts<Row>
  readonly #found: Row[] = []
  #place: number
  #isOver = false
  #wake = () => {}

  constructor(parts: RowFollowerParts<Row>) {
    this.#parts = parts
    this.#place = parts.from
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async next(): Promise<IteratorResult<ServerEvent>> {
    while (!this.#isOver) {
      const found = this.#found.shift()
      if (found !== undefined) return { done: false, value: this.#parts.toEvent(found) }
      await this.#readOn()
    }
    return { done: true, value: undefined }
  }

  async return(): Promise<IteratorResult<ServerEvent>> {
    this.#isOver = true
    this.#wake()
    return { done: true, value: undefined }
  }

  /** Reads the next slice, or waits until there may be one. */
  async #readOn(): Promise<void> {
    const { read, select, wait } = this.#parts
    let callOff = () => {}
    const woken = new Promise<void>(resolve => {
      this.#wake = resolve
      // Must come before reading, to catch rows inserted during the read.
      callOff = wait(resolve)
    })
    try {
      const slice = await read(this.#place)
      this.#place = slice.at(-1)?.ordinal ?? this.#place
      this.#found.push(...slice.map(({ row }) => row).filter(select))
      // Skipping many rows must not block other work.
      await (slice.length === 0 ? woken : new Promise(setImmediate))
    } finally {
      callOff()
    }
  }
}
