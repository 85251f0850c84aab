import type { ScanMemory } from './module.ts'

/** Number of rows that a thread scans at a time. A slice of 384 dimensions takes about 30 µs. */
export const SLICE_ROWS = 1_024
/** Maximum number of finished slices of a worker that the coordinator has not read yet. */
export const UNREAD_SLICES_MAX = 8
/** Bytes of results per worker. */
export const WORKER_RESULT_BYTES = UNREAD_SLICES_MAX * SLICE_ROWS * Float64Array.BYTES_PER_ELEMENT

/** The quantized rows of a segment in a shared memory. The query is at offset 0. */
export interface SharedRows {
  readonly memory: ScanMemory
  readonly strideBytes: number
  readonly rowsOffset: number
  /** Offset of the results of all workers, `WORKER_RESULT_BYTES` each. */
  readonly resultsOffset: number
}

/** Message to a worker: rows of later jobs. */
export interface NumberedRows {
  readonly id: number
  readonly rows: SharedRows
}

/** Data that a worker gets when it starts. */
export interface ScanWorkerData {
  readonly control: SharedArrayBuffer
  /** Index of the worker. */
  readonly worker: number
}

/** Integers per cache line. Values that different threads write are in different lines. */
const LINE = 16
/** Indexes of the job. */
const [JOB, SEGMENT, SIZE, NEXT] = [0, 1, 2, LINE] as const
const FIRST_WORKER = 2 * LINE
/** Indexes of a worker, relative to its first: slices written, slices read, then job and slice of each unread one. */
const [WRITTEN, READ, UNREAD] = [0, LINE, 2 * LINE] as const
const INTS_PER_WORKER = UNREAD + Math.ceil((2 * UNREAD_SLICES_MAX) / LINE) * LINE

/** Creates the memory of {@link SliceCoordinator} and {@link SliceWorker}. */
export function createScanControl(workers: number): SharedArrayBuffer {
  return new SharedArrayBuffer((FIRST_WORKER + workers * INTS_PER_WORKER) * Int32Array.BYTES_PER_ELEMENT)
}

/** A slice that a worker computes. */
export interface ClaimedSlice {
  readonly from: number
  readonly count: number
  /** Offset to write the results to, relative to the results of all workers. */
  readonly resultsOffset: number
}

/** A slice that a worker has finished. */
export interface FinishedSlice {
  readonly slice: number
  /** Offset of the results, relative to the results of all workers. */
  readonly resultsOffset: number
}

/**
 * Coordinates a scan, in the thread that needs the results. Opens one job at a time. Threads claim the slices of the open job
 * one after another.
 *
 * The number of a job is odd while the job is open. A worker labels each slice with the job that it belongs to, so slices
 * that it finishes too late are recognized.
 */
export class SliceCoordinator {
  readonly #control: Int32Array
  readonly #workers: number

  constructor(control: SharedArrayBuffer, workers: number) {
    this.#control = new Int32Array(control)
    this.#workers = workers
  }

  /**
   * Opens a job, and wakes the workers.
   *
   * @param segment  ID of rows that all workers have received
   * @param size     number of rows
   */
  open(segment: number, size: number): void {
    Atomics.store(this.#control, SEGMENT, segment)
    Atomics.store(this.#control, SIZE, size)
    Atomics.store(this.#control, NEXT, 0)
    Atomics.add(this.#control, JOB, 1)
    Atomics.notify(this.#control, JOB)
  }

  close(): void {
    Atomics.add(this.#control, JOB, 1)
  }

  /** Claims a slice of the open job. Returns its index, which can be past the last slice. */
  claim(): number {
    return Atomics.add(this.#control, NEXT, 1)
  }

  /** Calls `read` with each slice of the open job that a worker has finished since the last call. */
  readFinished(read: (finished: FinishedSlice) => void): void {
    const job = this.#control[JOB]
    for (let worker = 0; worker < this.#workers; worker++) {
      const first = FIRST_WORKER + worker * INTS_PER_WORKER
      const written = Atomics.load(this.#control, first + WRITTEN)
      for (let at = this.#control[first + READ]!; at !== written; at = (at + 1) | 0) {
        const unread = at & (UNREAD_SLICES_MAX - 1)
        if (this.#control[first + UNREAD + 2 * unread] === job)
          read({
            slice: this.#control[first + UNREAD + 2 * unread + 1]!,
            resultsOffset: resultsOffsetOf(worker, unread),
          })
        Atomics.store(this.#control, first + READ, at + 1)
      }
    }
  }
}

/** Computes slices of the jobs of a {@link SliceCoordinator}, in a worker. */
export class SliceWorker {
  readonly #control: Int32Array
  readonly #worker: number
  readonly #first: number

  constructor({ control, worker }: ScanWorkerData) {
    this.#control = new Int32Array(control)
    this.#worker = worker
    this.#first = FIRST_WORKER + worker * INTS_PER_WORKER
  }

  /** Number of the last job. Read messages after it and before {@link work}, so that the rows of the job are known. */
  get current(): number {
    return Atomics.load(this.#control, JOB)
  }

  /** Waits until another job opens. */
  waitAfter(job: number): void {
    Atomics.wait(this.#control, JOB, job)
  }

  /** Computes slices of a job until none is left, or until the job is closed. */
  work(job: number, compute: (segment: number, slice: ClaimedSlice) => void): void {
    const isOpen = (job & 1) === 1
    const segment = Atomics.load(this.#control, SEGMENT)
    const size = Atomics.load(this.#control, SIZE)
    // The job is compared after its fields are read: if it is unchanged, all fields are its own.
    while (isOpen && this.current === job) {
      const written = this.#control[this.#first + WRITTEN]!
      const read = Atomics.load(this.#control, this.#first + READ)
      if (((written - read) | 0) === UNREAD_SLICES_MAX) {
        Atomics.wait(this.#control, this.#first + READ, read, 1)
        continue
      }
      const slice = Atomics.add(this.#control, NEXT, 1)
      const from = slice * SLICE_ROWS
      if (from >= size) return
      const unread = written & (UNREAD_SLICES_MAX - 1)
      compute(segment, {
        from,
        count: Math.min(SLICE_ROWS, size - from),
        resultsOffset: resultsOffsetOf(this.#worker, unread),
      })
      this.#control[this.#first + UNREAD + 2 * unread] = job
      this.#control[this.#first + UNREAD + 2 * unread + 1] = slice
      Atomics.store(this.#control, this.#first + WRITTEN, written + 1)
    }
  }
}

/** Returns the offset of a slice, relative to the results of all workers. */
function resultsOffsetOf(worker: number, unread: number): number {
  return worker * WORKER_RESULT_BYTES + unread * SLICE_ROWS * Float64Array.BYTES_PER_ELEMENT
}
