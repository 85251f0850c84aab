import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, dirname, join } from 'node:path'
import { packageRoot } from '../base/package.ts'

const packageName = 'onnxruntime-node'

/** The part of the package onnxruntime-node that is used. */
export interface NativeRuntime {
  readonly InferenceSession: {
    /** @param model  contents of an ONNX file */
    create(model: Uint8Array | string, options: NativeSessionOptions): Promise<NativeSession>
  }
  readonly Tensor: new (
    type: 'float32' | 'int64',
    data: Float32Array | BigInt64Array,
    shape: readonly number[],
  ) => NativeTensor
}

export interface NativeSessionOptions {
  /** Number of threads that compute one operation. */
  readonly intraOpNumThreads: number
  readonly interOpNumThreads: number
}

export interface NativeSession {
  readonly inputNames: readonly string[]
  readonly outputNames: readonly string[]
  /** Occupies the calling thread until the result is there. */
  run(inputs: Readonly<Record<string, NativeTensor>>): Promise<Readonly<Record<string, NativeTensor>>>
  release(): Promise<void>
}

export interface NativeTensor {
  readonly data: unknown
  readonly dims: readonly number[]
}

/** One thread per session: other threads of the machine are for other work, and a second one gains little. */
export const sessionOptions: NativeSessionOptions = { intraOpNumThreads: 1, interOpNumThreads: 1 }

/**
 * Returns the folder of onnxruntime-node, if it is installed for this package: in its own `node_modules`, or in the
 * `node_modules` that contains it. Does not search other folders: the current folder and the data directory could contain
 * native code of someone else.
 *
 * @param root  folder of this package
 */
export function findNativeRuntime(root: string = packageRoot()): string | undefined {
  const parent = dirname(root)
  const places = [join(root, 'node_modules'), ...(basename(parent) === 'node_modules' ? [parent] : [])]
  return places
    .map(place => join(place, packageName))
    .find(folder => existsSync(join(folder, 'package.json')))
}

/** @throws Error  the package cannot be loaded on this platform */
export function loadNativeRuntime(folder: string): NativeRuntime {
  return createRequire(join(folder, 'package.json'))(folder) as NativeRuntime
}
