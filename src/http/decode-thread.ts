import { join } from 'node:path'
import { packageRoot } from '../base/package.ts'
import { type OperationHost, threadHost } from '../base/threads.ts'
import { overloaded } from '../contract/errors.ts'
import { smallBodyBytes } from './body-memory.ts'
import type { DecodedBody } from './decoder.ts'

/** Name of a route in the contract. The worker thread uses it to find the schema. */
export interface RouteName {
  readonly topic: string
  readonly operation: string
}

export type DecodeOperations = { decode(body: RouteName & { bytes: Uint8Array }): DecodedBody }

/** Decodes a request body of a route in a worker thread. */
export type DecodeInThread = (route: RouteName, bytes: Buffer) => Promise<DecodedBody>

/** Idle time in milliseconds after which the thread ends and frees its memory. */
const idleMs = 10_000

/**
 * Heap limit of the thread in MB, which is enough for the largest body and its decoded value. A body that exceeds
 * the limit crashes the thread, but not the process.
 */
const heapMegabytes = 256

/** Creates a decoder that runs in a worker thread, one body at a time. The thread starts with the first body. */
export function openDecodeThread(): { decode: DecodeInThread; close(): Promise<void> } {
  const entry = join(packageRoot(), 'dist', 'src', 'http', 'worker.js')
  const host: OperationHost<DecodeOperations> = threadHost(entry, undefined, { idleMs, heapMegabytes })
  return {
    decode: (route, bytes) =>
      host.run('decode', { ...route, bytes }, [bytes.buffer as ArrayBuffer]).catch(rethrowDecodeError),
    close: () => host.close(),
  }
}

function rethrowDecodeError(error: unknown): never {
  const isOutOfMemory = error instanceof Error && 'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY'
  throw isOutOfMemory
    ? overloaded('the server had no memory left to decode the body', { cause: error })
    : error
}

/** Returns true for a body that would block the event loop for too long. */
export function blocksEventLoop(bytes: Buffer): boolean {
  return bytes.length > smallBodyBytes
}
