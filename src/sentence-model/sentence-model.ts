import { join } from 'node:path'
import { packageRoot } from '../base/package.ts'
import { type OperationHost, threadHost } from '../base/threads.ts'
import type { EncodedText } from './encoded-text.ts'
import type { FastestEncoderOptions, SentenceEngine } from './fastest-encoder.ts'
import { findNativeRuntime, loadNativeRuntime } from './native-runtime.ts'
import type { SentenceOperations } from './sentence-operations.ts'

/** Idle time in milliseconds after which a worker ends and its memory is free. */
const IDLE_MS = 60_000

/** Heap of a worker in MB. The weights are outside of it. */
const HEAP_MEGABYTES = 64

/** Maximum number of characters of the texts that a worker receives at once, unless it is a single text. */
const SLICE_CHARACTERS_MAX = 1_000

/** How often texts are sent to a worker if it ends before it has answered. */
const ATTEMPTS_MAX = 2

export interface SentenceModelOptions {
  /** Number of worker threads; default 1. */
  readonly threads?: number
  /** Idle time in milliseconds after which a worker ends; default one minute. */
  readonly idleMs?: number
  /** Path of the model; by default that of this package. */
  readonly model?: string
  /** Folder of onnxruntime-node, or null for none; by default the one that is installed for this package. */
  readonly runtime?: string | null
  /** Called once if onnxruntime-node is installed but cannot be used. */
  readonly onNativeFailure?: (reason: string) => void
  /** Built file of the worker. */
  readonly entry?: string
}

export interface EncodeOptions {
  /** Queries go before all background work that has not begun, and wait at most for one text of it. */
  readonly priority: 'query' | 'background'
  /** Rejects the call with the reason of the signal. Texts that a worker has begun are finished, and their result is ignored. */
  readonly signal?: AbortSignal
}

/** Texts that a worker encodes at once. */
interface Slice {
  readonly operation: 'embed' | 'encode'
  readonly texts: readonly string[]
  readonly call: Call
  /** Receives the results in the order of the texts. */
  readonly resolve: (results: never) => void
  attempts: number
}

interface Call {
  readonly reject: (error: unknown) => void
  isSettled: boolean
}

interface Worker {
  readonly host: OperationHost<SentenceOperations>
  isBusy: boolean
  /** True after its first call, so that it has probably loaded the model. */
  isStarted: boolean
}

/**
 * The built-in sentence model, all-MiniLM-L6-v2, in worker threads. It loads at the first call, and its memory is freed
 * when it was idle for a minute. The model knows English only. If onnxruntime-node is installed for this package, it computes
 * most vectors.
 *
 * If a worker crashes, its texts are encoded once more by a new one; if that fails too, their call is rejected.
 */
export class SentenceModel {
  readonly #workers: readonly Worker[]
  readonly #waiting: Record<EncodeOptions['priority'], Slice[]> = { query: [], background: [] }
  readonly #onNativeFailure: (reason: string) => void
  /** Folder of onnxruntime-node until a worker has loaded it, or has failed to. */
  #runtimeToLoad: string | null
  #isClosed = false

  constructor({
    threads = 1,
    idleMs = IDLE_MS,
    model,
    runtime = findNativeRuntime() ?? null,
    onNativeFailure = () => {},
    entry = join(packageRoot(), 'dist', 'src', 'sentence-model', 'worker.js'),
  }: SentenceModelOptions = {}) {
    this.#runtimeToLoad = runtime
    this.#onNativeFailure = onNativeFailure
    const options: FastestEncoderOptions = { model, runtime: runtime ?? undefined }
    this.#workers = Array.from({ length: threads }, () => ({
      host: threadHost<SentenceOperations>(entry, options, { heapMegabytes: HEAP_MEGABYTES, idleMs }),
      isBusy: false,
      isStarted: false,
    }))
  }

  /**
   * Returns the vector of each text, of 384 dimensions and length 1. Text beyond 256 tokens is ignored.
   *
   * @throws Error  the model is missing or damaged, the model is closed, or workers crashed
   */
  embed(texts: readonly string[], options: EncodeOptions): Promise<Float32Array[]> {
    return this.#run('embed', texts, options)
  }

  /** Like {@link embed}, but also returns the vectors of the tokens. */
  tokenVectors(texts: readonly string[], options: EncodeOptions): Promise<EncodedText[]> {
    return this.#run('encode', texts, options)
  }

  /** Returns the engine of the first worker, which is started if necessary. */
  engine(): Promise<SentenceEngine> {
    return this.#workers[0]!.host.run('engine', undefined)
  }

  /** Ends the workers when they have finished what they have begun. Rejects texts that wait, and later calls. */
  async close(): Promise<void> {
    this.#isClosed = true
    for (const slice of this.#takeWaiting()) slice.call.reject(closedError())
    await Promise.all(this.#workers.map(({ host }) => host.close()))
  }

  async #run<K extends 'embed' | 'encode'>(
    operation: K,
    texts: readonly string[],
    { priority, signal }: EncodeOptions,
  ): Promise<Awaited<ReturnType<SentenceOperations[K]>>> {
    signal?.throwIfAborted()
    if (this.#isClosed) throw closedError()
    const results = await new Promise<unknown[][]>((resolve, reject) => {
      const settle = () => {
        call.isSettled = true
        signal?.removeEventListener('abort', abort)
      }
      const call: Call = {
        isSettled: false,
        reject: error => {
          settle()
          reject(error)
        },
      }
      const abort = () => call.reject(signal?.reason)
      signal?.addEventListener('abort', abort)
      const parts = sliceTexts(texts).map(
        part =>
          new Promise<unknown[]>(resolvePart =>
            this.#waiting[priority].push({
              operation,
              texts: part,
              call,
              resolve: resolvePart,
              attempts: 0,
            }),
          ),
      )
      void Promise.all(parts).then(all => {
        settle()
        resolve(all)
      })
      this.#startWaiting()
    })
    return results.flat() as Awaited<ReturnType<SentenceOperations[K]>>
  }

  /** Gives slices that wait to idle workers. */
  #startWaiting(): void {
    for (const priority of ['query', 'background'] as const) {
      const waiting = this.#waiting[priority]
      while (waiting.length > 0) {
        if (waiting[0]!.call.isSettled) {
          waiting.shift()
          continue
        }
        const worker = this.#idleWorker(priority)
        if (!worker) break
        void this.#encode(worker, waiting.shift()!, priority)
      }
    }
  }

  /** Returns an idle worker. A query waits for a worker that has started: that takes less time than to start another. */
  #idleWorker(priority: EncodeOptions['priority']): Worker | undefined {
    const started = this.#workers.filter(worker => worker.isStarted)
    const idle = started.find(worker => !worker.isBusy)
    if (idle || (priority === 'query' && started.length > 0)) return idle
    return this.#workers.find(worker => !worker.isBusy)
  }

  async #encode(worker: Worker, slice: Slice, priority: EncodeOptions['priority']): Promise<void> {
    worker.isBusy = true
    worker.isStarted = true
    slice.attempts++
    try {
      slice.resolve((await worker.host.run(slice.operation, slice.texts)) as never)
      if (this.#runtimeToLoad !== null) await this.#followEngine(worker, this.#runtimeToLoad)
    } catch (error) {
      worker.isStarted = false
      if (slice.attempts < ATTEMPTS_MAX && !this.#isClosed) this.#waiting[priority].unshift(slice)
      else slice.call.reject(error)
    }
    worker.isBusy = false
    this.#startWaiting()
  }

  /** Waits for a worker to load onnxruntime-node, and reports a failure. */
  async #followEngine({ host }: Worker, runtime: string): Promise<void> {
    const { name, failure } = await host.run('engine', undefined)
    if (this.#runtimeToLoad === null || (name === 'wasm' && failure === null)) return
    this.#runtimeToLoad = null
    if (failure !== null) this.#onNativeFailure(failure)
    // A native module that all threads have unloaded cannot be loaded again, so this thread keeps it loaded.
    else loadNativeRuntime(runtime)
  }

  #takeWaiting(): Slice[] {
    return Object.values(this.#waiting).flatMap(waiting => waiting.splice(0))
  }
}

function closedError(): Error {
  return new Error('the sentence model is closed')
}

/** Splits texts into parts of at most `SLICE_CHARACTERS_MAX` characters or one text. */
function sliceTexts(texts: readonly string[]): string[][] {
  const slices: string[][] = []
  let room = 0
  for (const text of texts) {
    if (slices.length === 0 || text.length > room) {
      slices.push([])
      room = SLICE_CHARACTERS_MAX
    }
    slices.at(-1)!.push(text)
    room -= text.length
  }
  return slices
}
