import type { ServerEvent } from '../contract/route.ts'
import type { Stored } from '../storage/rows.ts'

export interface FollowerParts<Row> {
  /** The ordinal after which to begin. */
  readonly from: number
  /** The next rows after an ordinal, in order; none where there are no more yet. */
  readonly read: (after: number) => Promise<readonly Stored<Row>[]>
  readonly select: (row: Row) => boolean
  readonly toEvent: (row: Row) => ServerEvent
  /** Call back when there may be more; returns a function that calls it off. */
  readonly wait: (wake: () => void) => () => void
}

/**
 * Rows of a table as they come, in the order of insertion, each once.
 *
 * Nothing is read before it is asked for, so that a slow reader holds one slice and no more. An iterator and not a
 * generator, as the `return` of a generator waits for its `next`, which here waits for what may never happen.
 */
export class Follower<Row> implements AsyncIterableIterator<ServerEvent> {
  readonly #parts: FollowerParts<Row>
  readonly #found: Row[] = []
  #place: number
  #isOver = false
  #wake = () => {}

  constructor(parts: FollowerParts<Row>) {
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

  /** Read the next slice; where there is none yet, wait for it. */
  async #readOn(): Promise<void> {
    const { read, select, wait } = this.#parts
    let callOff = () => {}
    const woken = new Promise<void>(resolve => {
      this.#wake = resolve
      // Before reading: what comes while the store is asked must not be waited for in vain.
      callOff = wait(resolve)
    })
    try {
      const slice = await read(this.#place)
      this.#place = slice.at(-1)?.ordinal ?? this.#place
      this.#found.push(...slice.map(({ row }) => row).filter(select))
      // A long way over rows that nobody asked for leaves room for others.
      await (slice.length === 0 ? woken : new Promise(setImmediate))
    } finally {
      callOff()
    }
  }
}
