import { parentPort, Worker, workerData } from 'node:worker_threads'
import { type ErrorCode, WbError } from '../contract/errors.ts'

/** Operations by name. Inputs and outputs must support structured cloning to run in a worker. */
// biome-ignore lint/suspicious/noExplicitAny: operations of any input are one family; call sites are typed by `ThreadOperations`
export type ThreadOperations = Record<string, (input: any) => unknown>

type InputOf<O extends ThreadOperations, K extends keyof O> = Parameters<O[K]>[0]
type OutputOf<O extends ThreadOperations, K extends keyof O> = Awaited<ReturnType<O[K]>>

/** Runs operations on this thread or in a worker thread. They start in the order of the calls. */
export interface OperationHost<O extends ThreadOperations> {
  /** @param transfer  buffers of the input to move to the worker instead of copying them */
  run<K extends keyof O & string>(
    name: K,
    input: InputOf<O, K>,
    transfer?: ArrayBuffer[],
  ): Promise<OutputOf<O, K>>
  close(): Promise<void>
}

/** Creates a host that runs operations on the calling thread. */
export function inlineHost<O extends ThreadOperations>(
  ops: O,
  close: () => void = () => {},
): OperationHost<O> {
  return {
    run: async (name, input) => (await ops[name]!(input)) as never,
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
  /** Heap size in MB. A worker that needs more ends, and its calls fail. */
  readonly heapMegabytes?: number
  /** Idle time in milliseconds after which the worker ends. */
  readonly idleMs?: number
}

/**
 * Creates a host that runs operations in a worker thread. The first call starts the thread. After a failure
 * or an idle timeout, the next call starts a new one.
 *
 * @param entry  built worker file, which calls `serveOperations`
 * @param data   passed to `serveOperations` in the worker
 */
export function threadHost<O extends ThreadOperations>(
  entry: string,
  data: unknown,
  limits: ThreadLimits = {},
): OperationHost<O> {
  const { heapMegabytes, idleMs } = limits
  const resourceLimits = heapMegabytes === undefined ? undefined : { maxOldGenerationSizeMb: heapMegabytes }
  const waiting = new Map<number, { resolve(value: never): void; reject(error: Error): void }>()
  let worker: Worker | undefined
  let idle: NodeJS.Timeout | undefined
  let nextId = 0

  /**
   * Rejects all waiting calls. A worker reports both an error and its exit; a new one may be running by then.
   */
  function fail(failedWorker: Worker, error: Error): void {
    if (worker !== failedWorker) return
    worker = undefined
    for (const call of waiting.values()) call.reject(error)
    waiting.clear()
  }

  function start(): Worker {
    const started = new Worker(entry, { workerData: data, resourceLimits })
    started.unref()
    started.on('message', (answer: CallResult) => {
      const call = waiting.get(answer.id)
      waiting.delete(answer.id)
      if (waiting.size === 0) {
        started.unref()
        if (idleMs !== undefined) idle = setTimeout(endIdle, idleMs).unref()
      }
      if ('value' in answer) call?.resolve(answer.value as never)
      else call?.reject(reviveError(answer.failure))
    })
    started.on('error', error => fail(started, reviveThreadError(error)))
    started.on('exit', code => fail(started, new Error(`worker ended with status ${code}`)))
    return started
  }

  async function end(ending: Worker): Promise<void> {
    ending.ref()
    const ended = new Promise<void>(resolve => ending.once('exit', () => resolve()))
    ending.postMessage('close')
    await ended
  }

  /** Ends an idle worker; the next call starts a new one. */
  function endIdle(): void {
    const ending = worker
    worker = undefined
    if (ending) void end(ending)
  }

  return {
    run(name, input, transfer = []) {
      return new Promise((resolve, reject) => {
        clearTimeout(idle)
        worker ??= start()
        const id = nextId++
        worker.postMessage({ id, name, input } satisfies Call, transfer)
        if (waiting.size === 0) worker.ref()
        waiting.set(id, { resolve, reject })
      })
    },
    async close() {
      clearTimeout(idle)
      if (worker) await end(worker)
    },
  }
}

/** Restores the class of an error that ended a thread. A copy without its class would count as a defect. */
function reviveThreadError(error: Error & { code?: ErrorCode; facts?: object }): Error {
  return error.name === 'WbError' ? reviveError(error) : error
}

function reviveError(failure: { code?: ErrorCode; message: string; facts?: object; stack?: string }): Error {
  if (failure.code) return new WbError(failure.code, failure.message, { ...failure.facts })
  const error = new Error(failure.message)
  if (failure.stack) error.stack = failure.stack
  return error
}

/**
 * Runs operations inside a worker thread: creates them once, then starts each call as it arrives.
 *
 * @param open  receives the `data` of `threadHost`
 */
export function serveOperations<D>(
  open: (data: D) => { ops: ThreadOperations; close(): void | Promise<void> },
): void {
  const port = parentPort
  if (!port) throw new Error('not a worker thread')
  const { ops, close } = open(workerData as D)
  port.on('message', async (call: Call | 'close') => {
    if (call === 'close') {
      await close()
      port.close()
      return
    }
    try {
      port.postMessage({ id: call.id, value: await ops[call.name]!(call.input) })
    } catch (error) {
      port.postMessage({ id: call.id, failure: describeError(error) })
    }
  })
}

function describeError(error: unknown) {
  if (error instanceof WbError) return { code: error.code, message: error.message, facts: error.facts }
  return error instanceof Error ? { message: error.message, stack: error.stack } : { message: String(error) }
}
