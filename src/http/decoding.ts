import { join } from 'node:path'
import { packageRoot } from '../base/package.ts'
import { type Host, threaded } from '../base/threads.ts'
import { overloaded, smallBodyBytes } from './body-memory.ts'
import type { Decoded } from './decode.ts'

/** Names of a route in the contract, by which a thread finds its schema. */
export interface RouteName {
  readonly topic: string
  readonly operation: string
}

export type DecodeOps = { decode(body: RouteName & { bytes: Uint8Array }): Decoded }

/** Decodes bodies of the contract's routes away from the event loop. */
export type DecodeElsewhere = (route: RouteName, bytes: Buffer) => Promise<Decoded>

/** Time without bodies after which the thread ends and frees its memory. */
const idleMs = 10_000

/** Enough for the largest body and its value. A value that needs more ends the thread, not the process. */
const heapMegabytes = 256

/** Opens a thread that decodes bodies, one at a time; it starts with the first one. */
export function openDecoding(): { decode: DecodeElsewhere; close(): Promise<void> } {
  const entry = join(packageRoot(), 'dist', 'src', 'http', 'worker.js')
  const host: Host<DecodeOps> = threaded(entry, undefined, { idleMs, heapMegabytes })
  return {
    decode: (route, bytes) =>
      host.run('decode', { ...route, bytes }, [bytes.buffer as ArrayBuffer]).catch(refuse),
    close: () => host.close(),
  }
}

function refuse(error: unknown): never {
  const isOutOfMemory = error instanceof Error && 'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY'
  throw isOutOfMemory ? overloaded('the server had no memory left to decode the body', error) : error
}

/** Size from which decoding a body would block the event loop for too long. */
export function isLarge(bytes: Buffer): boolean {
  return bytes.length > smallBodyBytes
}
