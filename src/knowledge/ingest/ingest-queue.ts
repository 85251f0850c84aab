import { overloaded } from '../../contract/errors.ts'
import type { RowStore } from '../../storage/rows.ts'
import { tables } from '../../storage/tables.ts'

/** Value of `Retry-After` in seconds. */
const retryAfterSeconds = 2
/** Time in milliseconds for which a measured size is used. */
const measurementValidMs = 1_000
/** A size is used for at least this many times as long as its measurement took, so that measuring takes a small share of the time. */
const measurementValidFactor = 50
/** Approximate number of bytes that a job takes in addition to its text. */
const bytesPerJob = 500
/** Maximum number of workspaces whose sizes are kept. */
const workspacesMax = 1_000

export interface IngestQueueLimits {
  /** Maximum size in bytes of the texts that wait for jobs. */
  readonly totalBytes: number
  readonly perWorkspaceBytes: number
}

interface IngestQueueParts {
  readonly rows: Pick<RowStore, 'measure'>
  readonly limits: IngestQueueLimits
  /** Called when a text was rejected, so that jobs run even in a process that does not run them otherwise. */
  readonly onFull: () => void
}

/** The size of the waiting texts: as measured, plus what this process has added since. */
interface QueuedSize {
  bytes: number
  expiresMs: number
}

/**
 * Limits the texts of asynchronous ingests that are stored until their jobs end, in all processes of a store.
 *
 * A workspace can use as much as is free for all others, and `perWorkspaceBytes` at most. So if one workspace fills the queue, there is
 * always room for another one, and the shares of workspaces that fill it become equal. The first text of a workspace can have any size
 * that is free, and the first text of all any size. Other processes can exceed the limits by what
 * they accept in a second.
 *
 * @see docs/decisions/0061-hosted-embeddings.md
 */
export class IngestQueue {
  readonly #sizes = new Map<string, QueuedSize>()

  constructor(private readonly parts: IngestQueueParts) {}

  /**
   * Counts a text as waiting.
   *
   * @returns a function that stops counting it, for a text that was not stored
   * @throws overloaded  there is no room for the text now
   */
  async add(workspaceId: string, text: string): Promise<() => void> {
    const { limits, onFull } = this.parts
    const bytes = Buffer.byteLength(text) + bytesPerJob
    const [total, own] = [await this.#size(''), await this.#size(workspaceId)]
    const freeBytes = limits.totalBytes - total.bytes - bytes
    const ownBytesMax = Math.min(limits.perWorkspaceBytes, freeBytes)
    const isFirst = total.bytes === 0 || (own.bytes === 0 && freeBytes >= 0)
    if (!isFirst && own.bytes + bytes > ownBytesMax) {
      onFull()
      throw overloaded('too much text is waiting for ingest jobs', { retryAfterSeconds })
    }
    const sizes = [total, own]
    for (const size of sizes) size.bytes += bytes
    return () => {
      for (const size of sizes) size.bytes -= bytes
    }
  }

  /** @param workspaceId  '' for all workspaces */
  async #size(workspaceId: string): Promise<QueuedSize> {
    const known = this.#sizes.get(workspaceId)
    const startedMs = performance.now()
    if (known && startedMs < known.expiresMs) return known
    const prefix = workspaceId === '' ? [] : [workspaceId]
    const { bytes } = await this.parts.rows.measure(tables.jobInputs, 'byWorkspace', prefix)
    const endedMs = performance.now()
    const expiresMs = endedMs + Math.max(measurementValidMs, (endedMs - startedMs) * measurementValidFactor)
    const size = { bytes, expiresMs }
    this.#sizes.delete(workspaceId)
    this.#sizes.set(workspaceId, size)
    const [oldest] = this.#sizes.keys()
    if (this.#sizes.size > workspacesMax) this.#sizes.delete(oldest!)
    return size
  }
}
