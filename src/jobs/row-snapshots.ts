import type { Clock } from '../base/clock.ts'
import type { RowReader, Stored } from '../storage/rows.ts'

/**
 * Shares reads of rows among the event streams of a job. A snapshot reads each row at most once, and is used for a short time.
 * Because a stream reads the job first, its document is never older than the job, so that a hidden document also hides later
 * changes of the job.
 */
export class RowSnapshots {
  readonly #deps: { readonly rows: RowReader; readonly clock: Clock; readonly maxAgeMs: number }
  readonly #current = new Map<string, RowReader>()

  constructor(deps: { readonly rows: RowReader; readonly clock: Clock; readonly maxAgeMs: number }) {
    this.#deps = deps
  }

  /** Returns the current snapshot for a job, or a new one. */
  current(jobId: string): RowReader {
    return this.#current.get(jobId) ?? this.create(jobId)
  }

  /** Replaces the current snapshot for a job. */
  create(jobId: string): RowReader {
    const { rows, clock, maxAgeMs } = this.#deps
    const snapshot = readOnce(rows)
    this.#current.set(jobId, snapshot)
    clock.after(maxAgeMs, () => {
      if (this.#current.get(jobId) === snapshot) this.#current.delete(jobId)
    })
    return snapshot
  }

  /** Removes the current snapshot for a job, because the job has changed. */
  delete(jobId: string): void {
    this.#current.delete(jobId)
  }
}

/** Returns a reader that reads each row at most once. */
function readOnce(rows: RowReader): RowReader {
  const reads = new Map<string, Promise<Stored<never> | undefined>>()
  return {
    get(table, key, tags) {
      const id = JSON.stringify([table.name, key, tags])
      const earlier = reads.get(id)
      if (earlier) return earlier
      const read = rows.get(table, key, tags)
      reads.set(id, read as Promise<Stored<never> | undefined>)
      return read
    },
  }
}
