import { parentPort, Worker, workerData } from 'node:worker_threads'
import { type ErrorCode, WbError } from '../contract/errors.ts'

/** Operations by name. Inputs and outputs must support structured cloning to run in a worker. */
// biome-ignore lint/suspicious/noExplicitAny: operations have different inputs; `run` has the type of each
export type ThreadOperations = Record<string, (input: any) => unknown>

type InputOf<O extends ThreadOperations, K extends keyof O> = Parameters<O[K]>[0]
type OutputOf<O extends ThreadOperations, K extends keyof O> = Awaited<ReturnType<O[K]>>

/** Runs operations on this thread or in a worker thread. Operations start in the order of the calls. */
export interface OperationHost<O extends ThreadOperations> {
  /** @param transfer  buffers of the input that are moved to the worker instead of copied */
  run<K extends keyof O & string>(
    name: K,
    input: InputOf<O, K>,
    transfer?: ArrayBuffer[],
  ): Promise<OutputOf<O, K>>
  close(): Promise<void>
}

/** Creates a host that runs operations on the calling thread. */
export function inlineHost<O extends ThreadOperations>(
  operations: O,
  close: () => void | Promise<void> = () => {},
): OperationHost<O> {
  return {
    run: async (name, input) => (await operations[name]!(input)) as never,
    close: async () => close(),
  }
}

interface Call {
  id: number
  name: string
  input: unknown
}
type CallResult =
  | { id: number; value: unknown }
  | { id: number; failure: { code?: ErrorCode; message: string; facts?: object; stack?: string } }

/** Resource limits of a worker thread. */
export interface ThreadLimits {
  /** Heap size in MB. A worker that needs more memory ends, and its calls fail. */
  readonly heapMegabytes?: number
  /** Idle time in milliseconds after which the worker ends. */
  readonly idleMs?: number
  /** Duration of a call in milliseconds after which the worker ends. All its calls fail with {@link ThreadTimeout}. */
  readonly callMs?: number
  /** True to discard the output of libraries to the terminal. */
  readonly isSilent?: boolean
}

/** A call of a worker thread took too long. */
export class ThreadTimeout extends Error {}

/** A worker thread needed more memory than it may use. */
export class ThreadOutOfMemory extends Error {}

/**
 * Creates a host that runs operations in a worker thread. The first call starts the thread. After a failure
 * or an idle timeout, the next call starts a new thread.
 *
 * @param entry  built worker file, which calls `serveOperations`
 * @param data   passed to `serveOperations` in the worker
 */
export function threadHost<O extends ThreadOperations>(
  entry: string,
  data: unknown,
  limits: ThreadLimits = {},
): OperationHost<O> {
  const { heapMegabytes, idleMs, callMs, isSilent = false } = limits
  const resourceLimits = heapMegabytes === undefined ? undefined : { maxOldGenerationSizeMb: heapMegabytes }
  const pendingCalls = new Map<number, { resolve(value: never): void; reject(error: Error): void }>()
  let worker: Worker | undefined
  let idleTimer: NodeJS.Timeout | undefined
  let nextId = 0
  let isClosing = false

  /**
   * Rejects all pending calls of a failed worker. Called for its error and again for its exit, when a new worker may
   * already be running.
   */
  function fail(failedWorker: Worker, error: Error): void {
    if (worker !== failedWorker) return
    worker = undefined
    for (const call of pendingCalls.values()) call.reject(error)
    pendingCalls.clear()
  }

  function start(): Worker {
    const output = { stdout: isSilent, stderr: isSilent }
    const newWorker = new Worker(entry, { workerData: data, resourceLimits, ...output })
    if (isSilent) for (const stream of [newWorker.stdout, newWorker.stderr]) stream.resume()
    newWorker.unref()
    newWorker.on('message', (result: CallResult) => {
      const call = pendingCalls.get(result.id)
      pendingCalls.delete(result.id)
      // A worker that is closing keeps the process alive until it has ended.
      if (pendingCalls.size === 0 && !isClosing) {
        newWorker.unref()
        if (idleMs !== undefined) idleTimer = setTimeout(endIdle, idleMs).unref()
      }
      if ('value' in result) call?.resolve(result.value as never)
      else call?.reject(reviveError(result.failure))
    })
    newWorker.on('error', error => fail(newWorker, reviveThreadError(error)))
    newWorker.on('exit', code => fail(newWorker, new Error(`worker ended with status ${code}`)))
    return newWorker
  }

  async function endWorker(target: Worker): Promise<void> {
    target.ref()
    const exited = new Promise<void>(resolve => target.once('exit', () => resolve()))
    target.postMessage('close')
    await exited
  }

  /** Ends an idle worker. The next call starts a new one. */
  function endIdle(): void {
    const idleWorker = worker
    worker = undefined
    if (idleWorker) void endWorker(idleWorker)
  }

  return {
    run(name, input, transfer = []) {
      return new Promise((resolve, reject) => {
        clearTimeout(idleTimer)
        worker ??= start()
        const id = nextId++
        const usedWorker = worker
        usedWorker.postMessage({ id, name, input } satisfies Call, transfer)
        if (pendingCalls.size === 0) usedWorker.ref()
        const endLate = () => {
          fail(usedWorker, new ThreadTimeout(`a call took longer than ${callMs} ms`))
          void usedWorker.terminate()
        }
        const timer = callMs === undefined ? undefined : setTimeout(endLate, callMs)
        pendingCalls.set(id, {
          resolve(value) {
            clearTimeout(timer)
            resolve(value)
          },
          reject(error) {
            clearTimeout(timer)
            reject(error)
          },
        })
      })
    },
    async close() {
      clearTimeout(idleTimer)
      isClosing = true
      if (worker) await endWorker(worker)
    },
  }
}

/** Restores the class of an error that ended a thread. Without the class, the error would be reported as a defect. */
function reviveThreadError(error: Error & { code?: string; facts?: object }): Error {
  if (error.code === 'ERR_WORKER_OUT_OF_MEMORY') return new ThreadOutOfMemory(error.message)
  return error.name === 'WbError' ? reviveError(error as Error & { code?: ErrorCode }) : error
}

function reviveError(failure: { code?: ErrorCode; message: string; facts?: object; stack?: string }): Error {
  if (failure.code) return new WbError(failure.code, failure.message, { ...failure.facts })
  const error = new Error(failure.message)
  if (failure.stack) error.stack = failure.stack
  return error
}

/**
 * Runs operations inside a worker thread. Creates the operations once, and starts each call as it arrives.
 *
 * @param open  receives the `data` of `threadHost`
 */
export function serveOperations<D>(
  open: (data: D) => { ops: ThreadOperations; close(): void | Promise<void> },
): void {
  const port = parentPort
  if (!port) throw new Error('not a worker thread')
  const { ops: operations, close } = open(workerData as D)
  port.on('message', async (call: Call | 'close') => {
    if (call === 'close') {
      await close()
      port.close()
      return
    }
    try {
      port.postMessage({ id: call.id, value: await operations[call.name]!(call.input) })
    } catch (error) {
      port.postMessage({ id: call.id, failure: describeError(error) })
    }
  })
}

function describeError(error: unknown) {
  if (error instanceof WbError) return { code: error.code, message: error.message, facts: error.facts }
  return error instanceof Error ? { message: error.message, stack: error.stack } : { message: String(error) }
}
