import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { packageRoot } from '../../base/package.ts'
import {
  createScanControl,
  type NumberedRows,
  type ScanWorkerData,
  type SharedRows,
  SLICE_ROWS,
  SliceCoordinator,
  WORKER_RESULT_BYTES,
} from './scan-job.ts'

/** Minimum bytes of rows that workers help with. Waking them takes as long as scanning 2 MiB. */
const ROW_BYTES_MIN = 8 * 1024 * 1024
/** Maximum number of threads in addition to the one that searches. */
const WORKERS_MAX = 3
/** Heap of a worker in MB. The rows are outside of it. */
const HEAP_MEGABYTES = 8

export interface ScanWorkersOptions {
  /** Number of threads; by default, one less than the number of cores, and at most three. */
  readonly count?: number
  /** Minimum bytes of rows that workers help with; default 8 MiB. */
  readonly rowBytesMin?: number
  /** Built file of the worker. */
  readonly entry?: string
}

/** A scan of all rows for one query. */
export interface SharedScan {
  readonly rows: SharedRows
  readonly size: number
  /** Computes the results of rows on the calling thread. They are valid until the next call. */
  compute(from: number, count: number): Float64Array
  /** Receives the results of each row once, in any order of slices. */
  offer(results: Float64Array, from: number, count: number): void
}

/** Running workers. */
interface Crew {
  readonly threads: Set<Worker>
  readonly jobs: SliceCoordinator
  /** Numbers of the rows that the workers have. */
  readonly segments: Map<SharedRows, number>
}

/**
 * Threads that help with the scan of a large segment while the machine has idle cores.
 *
 * The calling thread never waits for a worker: it scans slices itself until none is left, and then also those that a
 * worker has begun but not finished. A worker that is late, or that has failed, therefore delays no search, and changes no
 * result.
 */
export class ScanWorkers {
  readonly #count: number
  readonly #rowBytesMin: number
  readonly #entry: string
  #crew: Crew | undefined
  #isClosed = false
  #ended: Promise<unknown> = Promise.resolve()
  #finishedSlices = 0

  constructor({
    count = workerCount(),
    rowBytesMin = ROW_BYTES_MIN,
    entry = join(packageRoot(), 'dist', 'src', 'storage', 'scan', 'worker.js'),
  }: ScanWorkersOptions = {}) {
    this.#count = count
    this.#rowBytesMin = rowBytesMin
    this.#entry = entry
  }

  /** Number of bytes that `SharedRows` must have for results. */
  get resultBytes(): number {
    return this.#count * WORKER_RESULT_BYTES
  }

  /** Number of running threads. */
  get threadCount(): number {
    return this.#crew?.threads.size ?? 0
  }

  /** Number of slices that workers have computed. */
  get finishedSlices(): number {
    return this.#finishedSlices
  }

  /** Returns true if workers make a scan of so many bytes faster. */
  areWorthwhile(rowBytes: number): boolean {
    return this.#count > 0 && !this.#isClosed && rowBytes >= this.#rowBytesMin
  }

  /** Scans rows on this thread and on the workers. The first call starts the workers. */
  scan({ rows, size, compute, offer }: SharedScan): void {
    this.#crew ??= this.#start()
    const { jobs } = this.#crew
    const segment = this.#send(rows, this.#crew)
    const slices = Math.ceil(size / SLICE_ROWS)
    const isDone = new Uint8Array(slices)
    const countOf = (slice: number) => Math.min(SLICE_ROWS, size - slice * SLICE_ROWS)
    const scanSlice = (slice: number) => {
      const [from, count] = [slice * SLICE_ROWS, countOf(slice)]
      offer(compute(from, count), from, count)
      isDone[slice] = 1
    }
    const offerFinished = () =>
      jobs.readFinished(({ slice, resultsOffset }) => {
        if (isDone[slice] === 1) return
        const results = new Float64Array(rows.memory.buffer, rows.resultsOffset + resultsOffset, SLICE_ROWS)
        offer(results, slice * SLICE_ROWS, countOf(slice))
        isDone[slice] = 1
        this.#finishedSlices++
      })
    jobs.open(segment, size)
    try {
      for (let slice = jobs.claim(); slice < slices; slice = jobs.claim()) {
        scanSlice(slice)
        offerFinished()
      }
      for (let slice = 0; slice < slices; slice++) {
        if (isDone[slice] === 0) offerFinished()
        if (isDone[slice] === 0) scanSlice(slice)
      }
    } finally {
      jobs.close()
    }
  }

  /** Releases the memory of rows. Ends the workers if they have it, because a waiting thread collects no garbage. */
  release(rows: SharedRows): void {
    if (this.#crew?.segments.has(rows)) this.#end()
  }

  /** Ends the workers, and starts no others. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#end()
    await this.#ended
  }

  #end(): void {
    const threads = [...(this.#crew?.threads ?? [])]
    this.#crew = undefined
    this.#ended = Promise.all([this.#ended, ...threads.map(thread => thread.terminate())])
  }

  /** Sends rows to the workers, unless they have them. Returns their number. */
  #send(rows: SharedRows, { segments, threads }: Crew): number {
    const known = segments.get(rows)
    if (known !== undefined) return known
    const id = segments.size
    segments.set(rows, id)
    for (const thread of threads) thread.postMessage({ id, rows } satisfies NumberedRows)
    return id
  }

  #start(): Crew {
    const control = createScanControl(this.#count)
    const threads = new Set<Worker>()
    for (let worker = 0; worker < this.#count; worker++) {
      const thread = new Worker(this.#entry, {
        workerData: { control, worker } satisfies ScanWorkerData,
        resourceLimits: { maxOldGenerationSizeMb: HEAP_MEGABYTES, maxYoungGenerationSizeMb: 1 },
      })
      thread.unref()
      // Searches continue without a worker that has failed.
      thread.on('error', () => threads.delete(thread))
      thread.on('exit', () => threads.delete(thread))
      threads.add(thread)
    }
    return { threads, jobs: new SliceCoordinator(control, this.#count), segments: new Map() }
  }
}

/** Returns the number of workers that this machine can run in addition to the thread that searches. */
function workerCount(): number {
  return Math.min(WORKERS_MAX, availableParallelism() - 1)
}
